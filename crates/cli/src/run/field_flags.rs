//! The flags of plan fields that are one text.

use brewbench::experiments::{
    plan::Plan,
    plan_fields::{FIELDS, PlanField, YES_OR_NO},
};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser};

/// The fields whose flags are given, with their texts.
#[derive(Debug)]
pub struct FieldFlags(Vec<(&'static PlanField, String)>);

impl FieldFlags {
    /// Sets the fields of a plan.
    pub fn set(self, mut plan: Plan) -> anyhow::Result<Plan> {
        for (field, text) in self.0 {
            (field.set)(&mut plan, &text).map_err(|fault| anyhow::anyhow!("--{}: {fault}", field.flag))?;
        }
        Ok(plan)
    }
}

impl Args for FieldFlags {
    fn augment_args(command: Command) -> Command {
        command.args(FIELDS.iter().map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(field: &'static PlanField) -> Arg {
    let argument = Arg::new(field.flag).long(field.flag).value_name(field.value_name).help(field.help);
    if field.choices == YES_OR_NO {
        let values = PossibleValuesParser::new(field.choices);
        return argument.num_args(0..=1).default_missing_value("yes").value_parser(values);
    }
    if !field.choices.is_empty() {
        return argument.value_parser(PossibleValuesParser::new(field.choices));
    }
    argument.value_parser(|text: &str| (field.set)(&mut Plan::default(), text).map(|()| text.to_owned()))
}

impl FromArgMatches for FieldFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |field: &'static PlanField| Some((field, matches.get_one::<String>(field.flag)?.clone()));
        Ok(Self(FIELDS.iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
