//! The OpenAPI document. What the operations leave out, such as the description of a usual response, is added here.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::openapi::{
    OpenApi, PathItem, RefOr, Server,
    path::{Operation, ParameterIn},
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

/// What the parameters in paths are, by their names.
const IN_PATHS: [(&str, &str); 7] = [
    ("cell", "The cell, as the list of trends names it."),
    ("id", "Its id."),
    ("label", "The label."),
    ("name", "Its name."),
    ("run", "Id of the run."),
    ("sha256", "SHA-256 of the content, in hex."),
    ("target", "Name of the target."),
];

/// Completes the document of all routes.
pub fn complete(document: &mut OpenApi) {
    let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    document.components.get_or_insert_default().add_security_scheme("token", scheme);
    document.servers = Some(vec![Server::new("/")]);
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        complete_operation(operation);
    }
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut path.get, &mut path.put, &mut path.post, &mut path.patch, &mut path.delete].into_iter().flatten()
}

/// Names it uniquely, and describes its responses and the parameters in its path.
fn complete_operation(operation: &mut Operation) {
    let tag = operation.tags.iter().flatten().next().map(|tag| tag.replace([' ', '-'], "_"));
    if let (Some(tag), Some(id)) = (tag, &mut operation.operation_id) {
        *id = format!("{tag}_{id}");
    }
    for (status, response) in &mut operation.responses.responses {
        let usual = status.parse().ok().and_then(|code: u16| StatusCode::from_u16(code).ok()?.canonical_reason());
        let RefOr::T(response) = response else { continue };
        if let Some(usual) = usual.filter(|_| response.description.is_empty()) {
            usual.clone_into(&mut response.description);
        }
    }
    let names = BTreeMap::from(IN_PATHS);
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        if parameter.parameter_in == ParameterIn::Path && parameter.description.is_none() {
            parameter.description = names.get(parameter.name.as_str()).map(|text| (*text).to_owned());
        }
    }
}
