//! A summary as its sections: read from one, written to the next.

/// In the order they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Open,
    Decisions,
    State,
    Facts,
    Identifiers,
    Next,
}

const TITLES: [(Section, &str); 6] = [
    (Section::Open, "Goal and open requests"),
    (Section::Decisions, "Decisions and reasons"),
    (Section::State, "State of work and tasks"),
    (Section::Facts, "Facts and constraints"),
    (Section::Identifiers, "Exact identifiers"),
    (Section::Next, "Next steps"),
];

/// Lines by section, each without its dash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections([Vec<String>; 6]);

impl Sections {
    /// Reads a summary, also one that a model wrote: titles may be dressed up, what stands under none is state.
    pub fn parse(summary: &str) -> Self {
        let mut sections = Self::default();
        let mut current = Section::State;
        for line in summary.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(section) = title(line) {
                current = section;
                continue;
            }
            let line = line.trim_start_matches(['-', '*', '•']).trim_start();
            if !line.is_empty() {
                sections.of_mut(current).push(line.to_owned());
            }
        }
        sections
    }

    pub fn of(&self, section: Section) -> &[String] {
        &self.0[section as usize]
    }

    pub fn of_mut(&mut self, section: Section) -> &mut Vec<String> {
        &mut self.0[section as usize]
    }

    /// As text; an empty section is left out.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (section, title) in TITLES {
            if !self.of(section).is_empty() {
                text.push_str(title);
                text.push('\n');
            }
            for line in self.of(section) {
                text.push_str("- ");
                text.push_str(line);
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn title(line: &str) -> Option<Section> {
    let bare =
        line.trim_matches(|c: char| matches!(c, '#' | '*' | ':' | ' ') || c.is_ascii_digit() || c == '.');
    TITLES
        .into_iter()
        .find(|(_, title)| title.eq_ignore_ascii_case(bare))
        .map(|(section, _)| section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back_and_a_models_dress_is_taken_off() {
        let text = "Goal and open requests\n- a\nState of work and tasks\n- b\n- c\nExact identifiers\n- X-100, Y-200";
        assert_eq!(Sections::parse(text).render(), text);
        let dressed = "## 1. Goal and open requests:\n* a\n\n**State of work and tasks**\n- b\n- c\n\nExact identifiers\nX-100, Y-200";
        assert_eq!(Sections::parse(dressed).render(), text);
        assert_eq!(Sections::parse("just a text").of(Section::State), ["just a text"]);
    }
}
