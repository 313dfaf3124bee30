//! The value of an expression, as far as it can be told without running anything.

use std::rc::Rc;

use hcl_edit::Span as _;
use hcl_edit::expr::{
    BinaryOperator, Conditional, Expression, ForExpr, FuncCall, ObjectKey, Traversal, TraversalOperator,
    UnaryOperator,
};
use hcl_edit::template::{Directive, Element, Template};

use super::hcl::{Attribute, Block, Source};
use super::module::{Module, Step};
use super::tree::{Content, SourceLine, Tree};
use super::{functions, hcl};

/// Expressions within expressions, references that refer on.
const MAX_DEPTH: usize = 48;

/// What names stand for where an expression is: those of its module, and those of the loops around it.
#[derive(Clone)]
pub(super) struct Frame<'m> {
    pub(super) module: &'m Module<'m>,
    bindings: Vec<(String, Tree)>,
    depth: usize,
}

impl<'m> Frame<'m> {
    pub(super) fn new(module: &'m Module<'m>, depth: usize) -> Self {
        Self { module, bindings: Vec::new(), depth }
    }

    pub(super) fn with(&self, name: &str, value: Tree) -> Self {
        let mut inner = self.clone();
        inner.bindings.push((name.to_owned(), value));
        inner
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn attribute(&self, attribute: &Attribute) -> Tree {
        self.value(&attribute.value, &attribute.source, &attribute.place)
    }

    /// A block as one mapping: nested blocks are lists of mappings, those of `dynamic` included.
    pub(super) fn block(&self, block: &Block) -> Tree {
        let mut entries: Vec<(String, Tree)> = Vec::new();
        for attribute in &block.attributes {
            entries.push((attribute.name.clone(), self.attribute(attribute)));
        }
        let mut lists: Vec<(String, Vec<Tree>)> = Vec::new();
        let mut put = |kind: &str, tree: Tree| match lists.iter_mut().find(|(known, _)| known == kind) {
            Some((_, list)) => list.push(tree),
            None => lists.push((kind.to_owned(), vec![tree])),
        };
        for inner in &block.blocks {
            if inner.kind != "dynamic" {
                put(&inner.kind, self.block(inner));
                continue;
            }
            let kind = inner.label(0);
            let iterator = inner.attribute("iterator").map(|name| name.value.to_string().trim().to_owned());
            let iterator = iterator.unwrap_or_else(|| kind.to_owned());
            let Some(content) = inner.blocks.iter().find(|found| found.kind == "content") else { continue };
            let Some(over) = inner.attribute("for_each").map(|over| self.attribute(over)) else { continue };
            let Some(items) = each(&over) else {
                // How many there are cannot be told: that is said in their place.
                if !matches!(over.content, Content::Null) {
                    put(kind, over);
                }
                continue;
            };
            for (key, value) in items {
                let one = vec![("key".to_owned(), key), ("value".to_owned(), value)];
                let frame = self.with(&iterator, Tree::map_of(inner.place.clone(), one));
                put(kind, frame.block(content));
            }
        }
        for (kind, list) in lists {
            let place = list.first().map_or_else(|| block.place.clone(), |tree| tree.place.clone());
            entries.push((kind, Tree::list_of(place, list)));
        }
        Tree::map_of(block.place.clone(), entries)
    }

    pub(super) fn value(&self, expression: &Expression, source: &Source, above: &SourceLine) -> Tree {
        let place = source.place(expression, above);
        let says_it = matches!(
            expression,
            Expression::Null(_) | Expression::Bool(_) | Expression::Number(_) | Expression::String(_)
        );
        if !says_it && (self.depth > MAX_DEPTH || !self.module.spend()) {
            return unknown(expression, place);
        }
        let inner = Self { depth: self.depth + 1, ..self.clone() };
        inner.inside(expression, source, place)
    }

    fn inside(&self, expression: &Expression, source: &Source, place: SourceLine) -> Tree {
        let literal = |content: Content| {
            let offset = expression.span().map_or(0, |span| span.start);
            Tree::marked(place.clone(), content, self.module.marks.at(&source.file, offset))
        };
        match expression {
            Expression::Null(_) => Tree::new(place, Content::Null),
            Expression::Bool(value) => literal(Content::Bool(*value.as_ref())),
            Expression::Number(number) => literal(Content::Number(number.as_f64().unwrap_or_default())),
            Expression::String(text) => literal(Content::Text(text.as_str().to_owned())),
            Expression::Array(items) => {
                let items = items.iter().map(|item| self.value(item, source, &place)).collect();
                Tree::list_of(place, items)
            }
            Expression::Object(object) => {
                let mut entries: Vec<(String, Tree)> = Vec::with_capacity(object.len());
                for (key, value) in object.iter() {
                    let tree = self.value(value.expr(), source, &place);
                    let key = self.key(key, source, &place);
                    match hcl::key_of(&key) {
                        (own, true) => {
                            if let Some((_, before)) = entries.iter().find(|(known, _)| known == own) {
                                self.module.given_again(own, &before.place, &tree.place);
                            }
                            entries.retain(|(known, _)| known != own);
                            entries.push((own.to_owned(), tree));
                        }
                        (_, false) => entries.push((key, tree)),
                    }
                }
                Tree::map_of(place, entries)
            }
            Expression::StringTemplate(template) => self.template(expression, template, source, place),
            Expression::HeredocTemplate(heredoc) => {
                let mut heredoc = heredoc.clone();
                // `<<-` takes the common indentation away.
                if heredoc.indent().is_some() {
                    heredoc.dedent();
                }
                match heredoc.template.as_single_element().and_then(Element::as_literal) {
                    Some(text) => literal(Content::Text(text.as_str().to_owned())),
                    None => self.template(expression, &heredoc.template, source, place),
                }
            }
            Expression::Parenthesis(inner) => self.value(inner.inner(), source, &place),
            Expression::Variable(name) => {
                self.binding(name.as_str()).cloned().unwrap_or_else(|| unknown(expression, place))
            }
            Expression::Conditional(conditional) => self.conditional(conditional, source, place),
            Expression::FuncCall(call) => self.call(expression, call, source, place),
            Expression::Traversal(traversal) => self.traversal(expression, traversal, source, place),
            Expression::UnaryOp(op) => {
                let value = self.value(&op.expr, source, &place);
                let content = match (op.operator.value(), &value.content) {
                    (UnaryOperator::Neg, Content::Number(number)) => Content::Number(-number),
                    (UnaryOperator::Not, Content::Bool(value)) => Content::Bool(!value),
                    _ => return unknown(expression, place),
                };
                Tree::made_of(place, content, &[&value])
            }
            Expression::BinaryOp(op) => {
                let left = self.value(&op.lhs_expr, source, &place);
                let right = self.value(&op.rhs_expr, source, &place);
                match binary(*op.operator.value(), &left, &right) {
                    Some(content) => Tree::made_of(place, content, &[&left, &right]),
                    None => unknown(expression, place),
                }
            }
            Expression::ForExpr(over) => self.for_each(expression, over, source, place),
        }
    }

    fn binding(&self, name: &str) -> Option<&Tree> {
        self.bindings.iter().rev().find(|(known, _)| known == name).map(|(_, tree)| tree)
    }

    fn key(&self, key: &ObjectKey, source: &Source, place: &SourceLine) -> String {
        match key {
            ObjectKey::Ident(ident) => ident.as_str().to_owned(),
            ObjectKey::Expression(Expression::Variable(name)) => name.as_str().to_owned(),
            ObjectKey::Expression(expression) => {
                let tree = self.value(expression, source, place);
                tree.as_text().unwrap_or_else(|| expression.to_string().trim().to_owned())
            }
        }
    }

    fn template(
        &self,
        expression: &Expression,
        template: &Template,
        source: &Source,
        place: SourceLine,
    ) -> Tree {
        let (mut text, mut parts) = (String::new(), Vec::new());
        if !self.elements(template, source, &place, &mut text, &mut parts) {
            return unknown(expression, place);
        }
        let open = parts.iter().any(|part| matches!(part.content, Content::Unknown(_)));
        let parts: Vec<&Tree> = parts.iter().collect();
        // What is not known stands in the text as the reference that it is.
        let content = if open { Content::Unknown(format!("\"{text}\"")) } else { Content::Text(text) };
        Tree::made_of(place, content, &parts)
    }

    /// A template of a file of its own, filled in.
    pub(super) fn filled(&self, template: &Template, source: &Source, values: &Tree) -> Option<Tree> {
        let place = SourceLine { file: source.file.clone(), line: 1 };
        let (mut text, mut parts) = (String::new(), Vec::new());
        let whole = self.elements(template, source, &place, &mut text, &mut parts);
        let open = parts.iter().any(|part| matches!(part.content, Content::Unknown(_)));
        (whole && !open).then(|| Tree::made_of(place, Content::Text(text), &[values]))
    }

    fn elements(
        &self,
        template: &Template,
        source: &Source,
        place: &SourceLine,
        text: &mut String,
        parts: &mut Vec<Tree>,
    ) -> bool {
        template.iter().all(|element| match element {
            Element::Literal(literal) => {
                text.push_str(literal.as_str());
                true
            }
            Element::Interpolation(inner) => {
                let value = self.value(&inner.expr, source, place);
                let Some(word) = word(&value).or_else(|| reference(&value)) else { return false };
                text.push_str(&word);
                parts.push(value);
                true
            }
            Element::Directive(directive) => match directive.as_ref() {
                Directive::If(choice) => {
                    let condition = self.value(&choice.if_expr.cond_expr, source, place);
                    let Some(yes) = condition.as_bool() else { return false };
                    match (&choice.else_expr, yes) {
                        (_, true) => self.elements(&choice.if_expr.template, source, place, text, parts),
                        (Some(other), false) => self.elements(&other.template, source, place, text, parts),
                        (None, false) => true,
                    }
                }
                Directive::For(over) => {
                    let items = self.value(&over.for_expr.collection_expr, source, place);
                    let Some(items) = each(&items) else { return false };
                    items.into_iter().all(|(key, value)| {
                        let mut frame = self.with(over.for_expr.value_var.as_str(), value);
                        if let Some(name) = &over.for_expr.key_var {
                            frame = frame.with(name.as_str(), key);
                        }
                        frame.elements(&over.for_expr.template, source, place, text, parts)
                    })
                }
            },
        })
    }

    fn conditional(&self, conditional: &Conditional, source: &Source, place: SourceLine) -> Tree {
        let condition = self.value(&conditional.cond_expr, source, &place);
        match condition.as_bool() {
            Some(true) => self.value(&conditional.true_expr, source, &place),
            Some(false) => self.value(&conditional.false_expr, source, &place),
            None => unknown(&Expression::Conditional(Box::new(conditional.clone())), place),
        }
    }

    fn call(&self, expression: &Expression, call: &FuncCall, source: &Source, place: SourceLine) -> Tree {
        let name = call.name.name.as_str();
        let mut arguments: Vec<Tree> =
            call.args.iter().map(|argument| self.value(argument, source, &place)).collect();
        if call.args.expand_final()
            && let Some(last) = arguments.pop()
        {
            if matches!(last.content, Content::Unknown(_)) {
                return unknown(expression, place);
            }
            arguments.extend(last.items().iter().cloned());
        }
        functions::call(self, name, &arguments, &place).unwrap_or_else(|| unknown(expression, place))
    }

    fn traversal(
        &self,
        expression: &Expression,
        traversal: &Traversal,
        source: &Source,
        place: SourceLine,
    ) -> Tree {
        let operators: Vec<&TraversalOperator> =
            traversal.operators.iter().map(|operator| operator.value()).collect();
        let (start, used) = match &traversal.expr {
            Expression::Variable(root) if self.binding(root.as_str()).is_none() => {
                let steps = self.steps(root.as_str(), &operators, source, &place);
                match self.module.named(self, root.as_str(), &steps) {
                    Some((tree, used)) => (tree, used),
                    None => return unknown(expression, place),
                }
            }
            other => (self.value(other, source, &place), 0),
        };
        let keys = |operator: &TraversalOperator| match operator {
            TraversalOperator::Index(index) => Some(self.value(index, source, &place)),
            TraversalOperator::LegacyIndex(index) => {
                Some(Tree::new(place.clone(), Content::Number(*index.value() as f64)))
            }
            _ => None,
        };
        let rest = operators.get(used..).unwrap_or_default();
        if rest.is_empty() {
            return start;
        }
        // What is asked of a reference is one, too.
        if let Content::Unknown(reference) = &start.content {
            let steps = self.steps("", rest, source, &place);
            let written: String = steps.iter().map(ToString::to_string).collect();
            let asked = Content::Unknown(format!("{reference}{written}"));
            return Tree::made_of(start.place.clone(), asked, &[&start]);
        }
        walk(&start, rest, &keys).unwrap_or_else(|| unknown(expression, place))
    }

    /// The steps behind a name, with the keys worked out.
    fn steps(
        &self,
        root: &str,
        operators: &[&TraversalOperator],
        source: &Source,
        place: &SourceLine,
    ) -> Vec<Step> {
        let plain = matches!(root, "var" | "local" | "path");
        let step = |operator: &&TraversalOperator| match operator {
            TraversalOperator::GetAttr(name) => Step::Name(name.as_str().to_owned()),
            TraversalOperator::Index(index) if !plain => {
                let key = self.value(index, source, place);
                key.take_all();
                word(&key).map_or(Step::Other, Step::Key)
            }
            TraversalOperator::LegacyIndex(index) if !plain => Step::Key(index.value().to_string()),
            _ => Step::Other,
        };
        operators.iter().map(step).collect()
    }

    fn for_each(&self, expression: &Expression, over: &ForExpr, source: &Source, place: SourceLine) -> Tree {
        let items = self.value(&over.intro.collection_expr, source, &place);
        let Some(items) = each(&items) else { return unknown(expression, place) };
        let mut list: Vec<Tree> = Vec::new();
        let mut entries: Vec<(String, Tree)> = Vec::new();
        for (key, value) in items {
            let mut frame = self.with(over.intro.value_var.as_str(), value);
            if let Some(name) = &over.intro.key_var {
                frame = frame.with(name.as_str(), key);
            }
            if let Some(condition) = &over.cond {
                match frame.value(&condition.expr, source, &place).as_bool() {
                    Some(true) => {}
                    Some(false) => continue,
                    None => return unknown(expression, place),
                }
            }
            let value = frame.value(&over.value_expr, source, &place);
            let Some(key) = &over.key_expr else {
                list.push(value);
                continue;
            };
            let Some(key) = frame.value(key, source, &place).as_word() else {
                return unknown(expression, place);
            };
            match entries.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) if over.grouping => {
                    let mut together = known.items().to_vec();
                    together.push(value);
                    *known = Tree::list_of(place.clone(), together);
                }
                Some((_, known)) => *known = value,
                None if over.grouping => entries.push((key, Tree::list_of(place.clone(), vec![value]))),
                None => entries.push((key, value)),
            }
        }
        if over.key_expr.is_some() { Tree::map_of(place, entries) } else { Tree::list_of(place, list) }
    }
}

pub(super) fn unknown(expression: &Expression, place: SourceLine) -> Tree {
    let text: String = expression.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    Tree::new(place, Content::Unknown(text))
}

/// Whether an expression is nothing but a reference to a resource or to data.
fn is_reference(text: &str) -> bool {
    let plain = !text.contains(['(', ' ', '"', '?', '*']) && text.contains('.');
    plain
        && !["var.", "local.", "each.", "count.", "module."].iter().any(|start| {
            // Modules have resources in them.
            text.starts_with(start) && (*start != "module." || !text.contains('_'))
        })
}

/// A reference within a text; nothing for what no reference can stand for.
fn reference(tree: &Tree) -> Option<String> {
    match &tree.content {
        Content::Unknown(text) if !text.contains(['"', '$', '\n']) => Some(format!("${{{text}}}")),
        _ => None,
    }
}

/// As a template writes it.
pub(super) fn word(tree: &Tree) -> Option<String> {
    match &tree.content {
        Content::Text(text) => Some(text.clone()),
        Content::Number(number) => Some(number.to_string()),
        Content::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// The keys and values that a loop goes over; nothing if that cannot be told.
pub(super) fn each(tree: &Tree) -> Option<Vec<(Tree, Tree)>> {
    match &tree.content {
        Content::List(items) => Some(
            items
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    (Tree::new(item.place.clone(), Content::Number(index as f64)), item.clone())
                })
                .collect(),
        ),
        Content::Map(entries) => Some(
            entries
                .iter()
                .map(|(key, value)| {
                    (Tree::new(value.place.clone(), Content::Text(key.clone())), value.clone())
                })
                .collect(),
        ),
        _ => None,
    }
}

/// Follows attributes, indices and splats.
fn walk(
    tree: &Tree,
    operators: &[&TraversalOperator],
    keys: &dyn Fn(&TraversalOperator) -> Option<Tree>,
) -> Option<Tree> {
    let Some((first, rest)) = operators.split_first() else { return Some(tree.clone()) };
    match first {
        TraversalOperator::GetAttr(name) => {
            let (_, found) = tree.entries().iter().find(|(known, _)| known == name.as_str())?;
            walk(found, rest, keys)
        }
        TraversalOperator::Index(_) | TraversalOperator::LegacyIndex(_) => {
            let key = keys(first)?;
            let found = match &tree.content {
                Content::List(items) => items.get(usize::try_from(key.as_int()?).ok()?)?.clone(),
                Content::Map(entries) => {
                    key.take_all();
                    let key = word(&key)?;
                    entries.iter().find(|(known, _)| *known == key)?.1.clone()
                }
                _ => return None,
            };
            walk(&found, rest, keys)
        }
        TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => {
            let items = match &tree.content {
                Content::List(items) => items.clone(),
                Content::Null => Rc::default(),
                Content::Unknown(_) => return None,
                _ => Rc::new(vec![tree.clone()]),
            };
            let all: Option<Vec<Tree>> = items.iter().map(|item| walk(item, rest, keys)).collect();
            Some(Tree::list_of(tree.place.clone(), all?))
        }
    }
}

pub(super) fn equal(left: &Tree, right: &Tree) -> Option<bool> {
    Some(match (&left.content, &right.content) {
        // What a resource has is something, whatever it is.
        (Content::Unknown(reference), Content::Null) | (Content::Null, Content::Unknown(reference))
            if is_reference(reference) =>
        {
            false
        }
        (Content::Unknown(_), _) | (_, Content::Unknown(_)) => return None,
        (Content::Null, Content::Null) => true,
        (Content::Bool(left), Content::Bool(right)) => left == right,
        (Content::Number(left), Content::Number(right)) => left == right,
        (Content::Text(left), Content::Text(right)) => left == right,
        (Content::List(left), Content::List(right)) if left.len() == right.len() => {
            let pairs: Option<Vec<bool>> = left.iter().zip(right.iter()).map(|(l, r)| equal(l, r)).collect();
            pairs?.into_iter().all(|same| same)
        }
        (Content::Map(left), Content::Map(right)) => left.is_empty() && right.is_empty(),
        _ => false,
    })
}

fn binary(operator: BinaryOperator, left: &Tree, right: &Tree) -> Option<Content> {
    let number = |tree: &Tree| match &tree.content {
        Content::Number(number) => Some(*number),
        Content::Text(text) => text.parse().ok(),
        _ => None,
    };
    let truth = |tree: &Tree| match &tree.content {
        Content::Bool(value) => Some(*value),
        _ => None,
    };
    let numbers = || Some((number(left)?, number(right)?));
    Some(match operator {
        BinaryOperator::Eq => Content::Bool(equal(left, right)?),
        BinaryOperator::NotEq => Content::Bool(!equal(left, right)?),
        BinaryOperator::And => match (truth(left), truth(right)) {
            (Some(false), _) | (_, Some(false)) => Content::Bool(false),
            (Some(true), Some(true)) => Content::Bool(true),
            _ => return None,
        },
        BinaryOperator::Or => match (truth(left), truth(right)) {
            (Some(true), _) | (_, Some(true)) => Content::Bool(true),
            (Some(false), Some(false)) => Content::Bool(false),
            _ => return None,
        },
        BinaryOperator::Less => Content::Bool(numbers().map(|(l, r)| l < r)?),
        BinaryOperator::LessEq => Content::Bool(numbers().map(|(l, r)| l <= r)?),
        BinaryOperator::Greater => Content::Bool(numbers().map(|(l, r)| l > r)?),
        BinaryOperator::GreaterEq => Content::Bool(numbers().map(|(l, r)| l >= r)?),
        BinaryOperator::Plus => Content::Number(numbers().map(|(l, r)| l + r)?),
        BinaryOperator::Minus => Content::Number(numbers().map(|(l, r)| l - r)?),
        BinaryOperator::Mul => Content::Number(numbers().map(|(l, r)| l * r)?),
        BinaryOperator::Div => Content::Number(numbers().filter(|(_, r)| *r != 0.0).map(|(l, r)| l / r)?),
        BinaryOperator::Mod => Content::Number(numbers().filter(|(_, r)| *r != 0.0).map(|(l, r)| l % r)?),
    })
}
