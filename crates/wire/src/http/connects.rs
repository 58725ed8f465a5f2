//! Counts the connections that are begun. A request that fails while none was begun had a pooled one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

#[derive(Clone)]
pub(super) struct CountConnects(pub(super) Arc<AtomicU64>);

#[derive(Clone)]
pub(super) struct Counting<S> {
    inner: S,
    count: Arc<AtomicU64>,
}

impl<S> Layer<S> for CountConnects {
    type Service = Counting<S>;

    fn layer(&self, inner: S) -> Counting<S> {
        Counting { inner, count: self.0.clone() }
    }
}

impl<S: Service<R>, R> Service<R> for Counting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.inner.call(request)
    }
}
