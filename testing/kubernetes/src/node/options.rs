//! What a node looks like, and which images it has.

use std::collections::BTreeMap;

use super::image::Image;

/// A node and its images.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Name of the node.
    pub name: String,
    /// Labels besides those that every node has.
    pub labels: BTreeMap<String, String>,
    /// Images by the name that manifests use. All others can't be pulled.
    pub images: BTreeMap<String, Image>,
}

impl NodeOptions {
    /// A node that has the image `busybox:1` only.
    pub fn new(name: &str) -> Self {
        let images = BTreeMap::from([("busybox:1".to_owned(), Image::new(&["/bin/sh"]))]);
        Self { name: name.to_owned(), labels: BTreeMap::new(), images }
    }

    /// Adds an image.
    #[must_use]
    pub fn with_image(mut self, name: &str, image: Image) -> Self {
        self.images.insert(name.to_owned(), image);
        self
    }
}
