//! Markdown of a model, as lines for a terminal.
//!
//! Promises: a line is never wider than asked; control characters do not survive, not even those written as
//! entities; a link shows where it leads. Deliberately not here: when to print which part (`text`).

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::plain::clean;
use super::style::{Look, Style, char_width, width};

const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Deeper nesting is drawn at this depth: a model's joke must not push the text off the screen.
const PREFIXES_MAX: usize = 12;

/// Renders a whole document or a part that starts at a block.
pub fn render(text: &str, look: &Look) -> Vec<String> {
    let mut page = Page::new(look);
    for event in Parser::new_ext(text, OPTIONS) {
        page.take(event);
    }
    page.lines
}

/// Returns where the last block begins: what stands before it will not change as the text grows.
pub fn settled(text: &str) -> usize {
    let mut depth = 0usize;
    let mut last = 0;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(_) => {
                if depth == 0 {
                    last = range.start;
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Rule if depth == 0 => last = range.start,
            _ => {}
        }
    }
    // An indented block's own start is behind its indentation.
    text[..last].rfind('\n').map_or(0, |newline| newline + 1)
}

struct Page<'a> {
    look: &'a Look,
    lines: Vec<String>,
    /// What stands before each line: of lists and quotes, outermost first.
    prefixes: Vec<Prefix>,
    /// The open paragraph, heading or cell.
    inline: Vec<(char, Style)>,
    style: Vec<Style>,
    lists: Vec<Option<u64>>,
    links: Vec<(usize, String)>,
    in_code: bool,
    table: Option<Table>,
    /// A blank line is owed before the next block.
    gap: bool,
}

struct Prefix {
    first: String,
    rest: String,
    is_first: bool,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<(char, Style)>>>,
}

impl<'a> Page<'a> {
    fn new(look: &'a Look) -> Self {
        Self {
            look,
            lines: Vec::new(),
            prefixes: Vec::new(),
            inline: Vec::new(),
            style: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            in_code: false,
            table: None,
            gap: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.code(&text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.word(&text, Style::PLAIN),
            Event::Code(text) => self.word(&text, Style::CODE),
            Event::SoftBreak => self.word(" ", Style::PLAIN),
            Event::HardBreak => self.word("\n", Style::PLAIN),
            Event::Rule => {
                self.flush();
                self.blank_if_owed();
                let columns = self.room().min(40);
                self.line(&self.look.paint(Style::DIM, &"─".repeat(columns)));
                self.gap = true;
            }
            Event::TaskListMarker(done) => self.word(if done { "[x] " } else { "[ ] " }, Style::PLAIN),
            Event::FootnoteReference(name) => self.word(&format!("[{name}]"), Style::PLAIN),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.word(&text, Style::CODE),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.flush(),
            Tag::Heading { level, .. } => {
                self.flush();
                let style =
                    if level <= HeadingLevel::H2 { Style::BOLD } else { Style::BOLD.with(Style::DIM) };
                self.style.push(style);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                self.blank_if_owed();
                self.prefix("│ ", "│ ");
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.in_code = true;
                self.blank_if_owed();
                if let CodeBlockKind::Fenced(name) = kind
                    && !name.is_empty()
                {
                    let name = super::plain::one_line(&name);
                    self.line(&self.look.paint(Style::DIM, &format!("  {name}")));
                }
            }
            Tag::List(first) => {
                self.flush();
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number += 1;
                        mark
                    }
                    _ => "- ".to_owned(),
                };
                let rest = " ".repeat(width(&mark));
                self.prefix(&mark, &rest);
            }
            Tag::Emphasis => self.style.push(self.now().with(Style::ITALIC)),
            Tag::Strong => self.style.push(self.now().with(Style::BOLD)),
            Tag::Strikethrough => self.style.push(self.now().with(Style::STRIKE)),
            Tag::Link { dest_url, .. } => self.links.push((self.inline.len(), dest_url.to_string())),
            Tag::Image { dest_url, .. } => {
                self.word("image: ", Style::DIM);
                self.links.push((self.inline.len(), dest_url.to_string()));
            }
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.style.pop();
                self.flush();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.prefixes.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.gap = true;
            }
            TagEnd::Item => {
                self.flush();
                self.prefixes.pop();
                // Items of a tight list stand together.
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.style.pop();
            }
            TagEnd::Link | TagEnd::Image => self.link_end(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.draw_table(&table);
                }
                self.gap = true;
            }
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn now(&self) -> Style {
        self.style.last().copied().unwrap_or_default()
    }

    fn prefix(&mut self, first: &str, rest: &str) {
        let (first, rest) = if self.prefixes.len() < PREFIXES_MAX { (first, rest) } else { ("", "") };
        self.prefixes.push(Prefix { first: first.to_owned(), rest: rest.to_owned(), is_first: true });
    }

    fn word(&mut self, text: &str, style: Style) {
        let style = self.now().with(style);
        self.inline.extend(clean(text).chars().map(|c| (c, style)));
    }

    /// A link whose words are not its destination says where it leads.
    fn link_end(&mut self) {
        let Some((start, url)) = self.links.pop() else { return };
        let words: String = self.inline.get(start..).unwrap_or_default().iter().map(|(c, _)| *c).collect();
        let url = clean(&url);
        if words != url && format!("mailto:{words}") != url && !url.is_empty() {
            self.word(&format!(" ({url})"), Style::DIM);
        }
    }

    fn code(&mut self, text: &str) {
        for line in clean(text).lines() {
            let line: Vec<(char, Style)> = line.chars().map(|c| (c, Style::CODE)).collect();
            let room = self.room().saturating_sub(2).max(1);
            for piece in hard_wrap(&line, room) {
                let drawn = format!("  {}", self.draw(piece));
                self.line(drawn.trim_end());
            }
        }
    }

    /// Prints the open paragraph, if there is one.
    fn flush(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        if inline.iter().all(|(c, _)| c.is_whitespace()) {
            return;
        }
        self.blank_if_owed();
        for line in wrap(&inline, self.room()) {
            self.line(&self.draw(&line));
        }
    }

    fn blank_if_owed(&mut self) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            let prefix: String = self.prefixes.iter().map(|prefix| prefix.rest.as_str()).collect();
            self.lines.push(prefix.trim_end().to_owned());
        }
    }

    fn line(&mut self, drawn: &str) {
        let mut line = String::new();
        for prefix in &mut self.prefixes {
            line.push_str(if std::mem::take(&mut prefix.is_first) { &prefix.first } else { &prefix.rest });
        }
        line.push_str(drawn);
        self.lines.push(line);
    }

    /// Columns left beside the prefixes.
    fn room(&self) -> usize {
        let used: usize = self.prefixes.iter().map(|prefix| width(&prefix.rest)).sum();
        self.look.width.saturating_sub(used).max(8)
    }

    fn draw(&self, cells: &[(char, Style)]) -> String {
        let mut out = String::with_capacity(cells.len());
        let mut current = Style::PLAIN;
        for (c, style) in cells {
            if self.look.color && *style != current {
                out.push_str(&style.escape());
                current = *style;
            }
            if *c == '\t' { out.push_str("    ") } else { out.push(*c) }
        }
        if current != Style::PLAIN {
            out.push_str("\u{1b}[0m");
        }
        out
    }

    fn draw_table(&mut self, table: &Table) {
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![1; columns];
        for row in &table.rows {
            for (cell, width) in row.iter().zip(&mut widths) {
                *width = (*width).max(cells_width(cell));
            }
        }
        self.blank_if_owed();
        // Too wide for the screen: one line for each cell reads better than a torn grid.
        if widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1) > self.room() {
            return self.draw_table_as_list(table);
        }
        for (i, row) in table.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, width) in widths.iter().enumerate() {
                let empty = Vec::new();
                let cell = row.get(column).unwrap_or(&empty);
                let pad = " ".repeat(width - cells_width(cell));
                let drawn = self.draw(cell);
                match table.alignments.get(column) {
                    Some(Alignment::Right) => line.push_str(&format!("{pad}{drawn}")),
                    _ => line.push_str(&format!("{drawn}{pad}")),
                }
                line.push_str("  ");
            }
            self.line(line.trim_end());
            if i == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.line(&self.look.paint(Style::DIM, &rule.join("  ")));
            }
        }
    }

    fn draw_table_as_list(&mut self, table: &Table) {
        let Some((head, rows)) = table.rows.split_first() else { return };
        for row in rows {
            for (name, cell) in head.iter().zip(row) {
                let mut cells = name.clone();
                cells.extend(": ".chars().map(|c| (c, Style::PLAIN)));
                cells.extend(cell.iter().copied());
                for line in wrap(&cells, self.room()) {
                    self.line(&self.draw(&line));
                }
            }
            self.gap = true;
            self.blank_if_owed();
        }
    }
}

fn cells_width(cells: &[(char, Style)]) -> usize {
    cells.iter().map(|(c, _)| char_width(*c)).sum()
}

/// Breaks at spaces, and inside a word only where it is wider than a line.
fn wrap(cells: &[(char, Style)], columns: usize) -> Vec<Vec<(char, Style)>> {
    let mut lines = Vec::new();
    for paragraph in cells.split(|(c, _)| *c == '\n') {
        let mut line: Vec<(char, Style)> = Vec::new();
        for word in paragraph.split(|(c, _)| *c == ' ').filter(|word| !word.is_empty()) {
            let space = usize::from(!line.is_empty());
            if cells_width(&line) + space + cells_width(word) > columns && !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                // A space between two words of one look keeps it, so that links and code do not flicker.
                let before = line.last().map_or(Style::PLAIN, |(_, style)| *style);
                line.push((' ', if before == word[0].1 { before } else { Style::PLAIN }));
            }
            // It fits, or the line is empty and it is wider than any line.
            let mut pieces = hard_wrap(word, columns);
            if let Some(last) = pieces.pop() {
                for piece in pieces {
                    line.extend(piece);
                    lines.push(std::mem::take(&mut line));
                }
                line.extend(last);
            }
        }
        lines.push(line);
    }
    lines
}

/// Breaks a line that has no better place.
fn hard_wrap(cells: &[(char, Style)], columns: usize) -> Vec<&[(char, Style)]> {
    let mut pieces = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (i, (c, _)) in cells.iter().enumerate() {
        let wide = char_width(*c);
        if used + wide > columns && i > start {
            pieces.push(&cells[start..i]);
            (start, used) = (i, 0);
        }
        used += wide;
    }
    pieces.push(&cells[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { tty: true, color: false, width: 40, height: 20 };

    fn check(text: &str, want: &str) {
        let lines = render(text, &LOOK);
        for line in &lines {
            assert!(width(line) <= LOOK.width, "too wide: {line:?}");
        }
        assert_eq!(lines.join("\n"), want, "of {text:?}");
    }

    #[test]
    fn blocks_stand_apart_and_lists_together() {
        check(
            "# Title\nSome *text* with `code`\nand a soft break.\n\n- one\n- two\n  1. a\n  2. b\n\n> quoted\n\n---\nend",
            "Title\n\nSome text with code and a soft break.\n\n- one\n- two\n  1. a\n  2. b\n\n│ quoted\n\n────────────────────────────────────────\n\nend",
        );
    }

    #[test]
    fn long_lines_wrap_at_spaces_under_their_prefix() {
        check(
            "- aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj",
            "- aaaa bbbb cccc dddd eeee ffff gggg\n  hhhh iiii jjjj",
        );
        check(&"x".repeat(50), &format!("{}\n{}", "x".repeat(40), "x".repeat(10)));
        check(
            "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字",
            "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\n漢字",
        );
    }

    #[test]
    fn code_keeps_its_lines_and_spaces() {
        check(
            "Do:\n```rust\nfn main() {\n    let x = 1;\n\n}\n```\ndone",
            "Do:\n\n  rust\n  fn main() {\n      let x = 1;\n\n  }\n\ndone",
        );
    }

    #[test]
    fn links_say_where_they_lead() {
        check(
            "[docs](https://a.example/x) <https://b.example> ![pic](c.png)",
            "docs (https://a.example/x)\nhttps://b.example image: pic (c.png)",
        );
    }

    #[test]
    fn a_table_is_drawn_or_told() {
        check("|a|bbb|\n|-|--:|\n|1|2|\n|漢|4|", "a   bbb\n──  ───\n1     2\n漢    4");
        let wide = "w".repeat(30);
        check(&format!("|a|b|\n|-|-|\n|{wide}|{wide}|"), &format!("a: {wide}\nb: {wide}\n"));
    }

    #[test]
    fn an_entity_does_not_smuggle_an_escape() {
        check("a&#27;[31mb `\u{1b}[0m` &#x202e;c", "a^[[31mb ^[[0m \\u{202e}c");
        check("[x](&#27;y)", "x (^[y)");
    }

    #[test]
    fn colour_is_closed_on_every_line() {
        let look = Look { color: true, ..LOOK };
        let lines = render("**bold words that go on over the end of one line of the screen** plain", &look);
        assert_eq!(lines.len(), 2);
        for line in &lines {
            assert!(line.contains("\u{1b}[0;1m") && line.contains("\u{1b}[0m"), "{line:?}");
        }
    }

    #[test]
    fn only_the_last_block_may_still_change() {
        for (text, want) in [
            ("one", 0),
            ("one\n\ntwo", 5),
            ("- a\n- b", 0),
            ("- a\n- b\n\nend", 9),
            ("```\na\n\nb", 0),
            ("```\na\n```\nb", 10),
            ("one\n\n    code", 5),
            ("one\n\n---\n", 5),
        ] {
            assert_eq!(settled(text), want, "{text:?}");
        }
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_screen() {
        let lines = render(&format!("{}deep", "> ".repeat(200)), &LOOK);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("deep"));
    }
}
