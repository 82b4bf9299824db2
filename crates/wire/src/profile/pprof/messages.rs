//! The messages of `profile.proto`. The tags are the format's; unused fields are left out. Pure.

/// A profile. Only for writing: a foreign one is read field by field, because its lists may be longer than memory.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Profile {
    /// What each value of a sample means.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// The stacks.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Programs and libraries.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Places in them.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All texts; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Beginning, unix nanoseconds.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Length of the observation.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// The unit of `period`.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// Distance between two samples.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Texts for who opens the file.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// The type to show first.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// A type and its unit, as indexes of texts.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ValueType {
    /// Such as `cpu`.
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    /// Such as `nanoseconds`.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A stack.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Sample {
    /// Places, leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// One value of each type.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
}

/// A program or library.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Mapping {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its file, as the index of a text.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Identifies its build, as the index of a text.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether its functions are named.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
}

/// A place in a program.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Location {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// The mapping's id; 0 for none.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// The function, after those that were inlined into it.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A line in a function.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Line {
    /// The function's id.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
}

/// A function, with texts by their indexes.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Function {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// For people.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// As in the program.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Its source file.
    #[prost(int64, tag = "4")]
    pub filename: i64,
}
