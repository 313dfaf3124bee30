//! Diagnostics for people: the message, the line with the text underlined, and what to do next.

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use crate::{Diagnostic, FileId, Label, Severity, SourceMap, Span};

/// A line longer than this is named but not shown: it would be no help on any screen.
const LONGEST_LINE: usize = 1000;

/// Lines between two labels of one file beyond which they are shown apart.
const FAR_APART: usize = 2000;

/// Whether a text is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// For a terminal.
    Always,
    /// For files and pipes.
    Never,
}

/// The diagnostic as text, ending without a line break.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, color: Color) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = Group::with_title(level.primary_title(&diagnostic.message).id(diagnostic.code));
    for element in elements(diagnostic, sources) {
        group = group.element(element);
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note));
    }
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.with_name("hint").message(hint));
    }
    let renderer = match color {
        Color::Always => Renderer::styled(),
        Color::Never => Renderer::plain(),
    };
    renderer.render(&[group])
}

/// One snippet for each file, the primary one first.
fn elements<'a>(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> Vec<Element<'a>> {
    let Some(primary) = &diagnostic.primary else { return Vec::new() };
    let mut shown: Vec<(FileId, Vec<(AnnotationKind, &Label)>)> =
        vec![(primary.span.file, vec![(AnnotationKind::Primary, primary)])];
    for label in &diagnostic.secondary {
        let near = |other: &Label| {
            let file = sources.file(other.span.file);
            let (a, b) = (
                file.line_column(other.span.start as usize).0,
                file.line_column(label.span.start as usize).0,
            );
            a.abs_diff(b) < FAR_APART
        };
        match shown.iter_mut().find(|(file, labels)| *file == label.span.file && near(labels[0].1)) {
            Some((_, labels)) => labels.push((AnnotationKind::Context, label)),
            None => shown.push((label.span.file, vec![(AnnotationKind::Context, label)])),
        }
    }
    shown.into_iter().map(|(file, labels)| element(sources, file, &labels, diagnostic.private)).collect()
}

fn element<'a>(
    sources: &'a SourceMap,
    id: FileId,
    labels: &[(AnnotationKind, &'a Label)],
    private: bool,
) -> Element<'a> {
    let file = sources.file(id);
    let lines = labels.iter().map(|(_, label)| file.line_column(label.span.start as usize).0);
    let first = lines.clone().min().unwrap_or(1);
    let last = lines.max().unwrap_or(first);
    let window = file.line_range(first).start..file.line_range(last).end;
    let too_long = (first..=last).any(|line| file.line_range(line).len() > LONGEST_LINE);
    if private || too_long || file.text().is_empty() {
        let place = sources.location(labels[0].1.span);
        return Origin::path(file.path()).line(place.line).char_column(place.column).into();
    }
    let annotations = labels.iter().map(|(kind, label)| annotation(sources, *kind, label, window.start));
    Snippet::source(&file.text()[window.clone()])
        .line_start(first)
        .path(file.path())
        .annotations(annotations.collect::<Vec<_>>())
        .into()
}

/// The label, cut to its first line: a whole block underlined says less than where it begins.
fn annotation<'a>(
    sources: &SourceMap,
    kind: AnnotationKind,
    label: &'a Label,
    base: usize,
) -> Annotation<'a> {
    let file = sources.file(label.span.file);
    let Span { start, end, .. } = label.span;
    let start = file.floor_char((start as usize).min(file.text().len()));
    let line = file.line_range(file.line_column(start).0);
    let end = file.floor_char((end as usize).min(line.end)).max(start.min(line.end));
    let start = start.min(end);
    let annotation = kind.span(start - base..end - base);
    if label.text.is_empty() { annotation } else { annotation.label(label.text.as_str()) }
}
