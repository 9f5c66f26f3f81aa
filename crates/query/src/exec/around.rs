//! Operators that stand around another one and look at its rows.
//!
//! ```text
//!   around_rows!()      order and partitions are those of the one below, its only child:
//!                       for those that see each batch that passes
//!   around_operator!()  name and children are those of the one inside, which nobody else sees:
//!                       for those that do its work, or measure it
//! ```
//! The macros stand inside of an `impl ExecutionPlan`, which says for itself how it runs.

/// The operator has a field `input`, and can be cloned around another one.
macro_rules! around_rows {
    () => {
        fn properties(&self) -> &Arc<datafusion::physical_plan::PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }

        #[allow(clippy::needless_update, reason = "not all have other fields")]
        fn with_new_children(
            self: Arc<Self>,
            mut children: Vec<Arc<dyn ExecutionPlan>>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            let input = children.pop().unwrap_or_else(|| self.input.clone());
            Ok(Arc::new(Self { input, ..Self::clone(&self) }))
        }
    };
}

/// The operator has a field `window`, and is made around another one by `new`.
macro_rules! around_operator {
    () => {
        fn name(&self) -> &str {
            self.window.name()
        }

        fn properties(&self) -> &Arc<datafusion::physical_plan::PlanProperties> {
            self.window.properties()
        }

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            self.window.children()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            self.window.maintains_input_order()
        }

        fn apply_expressions(
            &self,
            f: &mut dyn FnMut(
                &Arc<dyn datafusion::physical_expr::PhysicalExpr>,
            ) -> Result<datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> Result<datafusion::common::tree_node::TreeNodeRecursion> {
            self.window.apply_expressions(f)
        }

        fn with_new_children(
            self: Arc<Self>,
            children: Vec<Arc<dyn ExecutionPlan>>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            use datafusion::physical_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            self.replace_children(children, options)
        }

        fn replace_children(
            self: Arc<Self>,
            children: Vec<Arc<dyn ExecutionPlan>>,
            options: datafusion::physical_plan::ReplaceChildrenOptions,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            Ok(Arc::new(Self::new(self.window.clone().replace_children(children, options)?)))
        }
    };
}

pub(crate) use {around_operator, around_rows};
