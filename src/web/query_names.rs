//! Refuses query parameters that an operation of the API does not have: a filter with a typing error would list everything.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use url::form_urlencoded;
use utoipa::openapi::{
    OpenApi, RefOr,
    path::{Operation, ParameterIn},
};

use crate::app::error::Error;

/// The names of the query parameters of each operation.
#[derive(Debug, Default)]
pub struct QueryNames(HashMap<(Method, String), Vec<String>>);

impl QueryNames {
    /// Takes them from the document of all routes.
    pub fn of(document: &OpenApi) -> Self {
        let operations = document.paths.paths.iter().flat_map(|(path, item)| {
            let methods = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::PATCH, &item.patch),
                (Method::DELETE, &item.delete),
            ];
            let names = move |(method, operation): (Method, &Option<Operation>)| {
                Some(((method, path.clone()), names(operation.as_ref()?)))
            };
            methods.into_iter().filter_map(names)
        });
        Self(operations.collect())
    }

    fn unknown(&self, request: &Request, path: &MatchedPath) -> Option<Error> {
        let query = request.uri().query()?;
        let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
        let known = self.0.get(&(method, path.as_str().to_owned()))?;
        let (name, _) =
            form_urlencoded::parse(query.as_bytes()).find(|(name, _)| known.iter().all(|own| own != name))?;
        let list = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        Some(Error::Invalid(format!("unknown query parameter {name:?}: {list}")))
    }
}

fn names(operation: &Operation) -> Vec<String> {
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(parameter.name.clone()),
        _ => None,
    });
    parameters.collect()
}

/// Middleware (`axum::middleware::from_fn_with_state`) of the routes of the API.
pub async fn check(
    State(known): State<Arc<QueryNames>>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    match path.and_then(|path| known.unknown(&request, &path)) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}
