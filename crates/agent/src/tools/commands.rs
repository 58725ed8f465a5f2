//! The little of shell grammar that rules may rely on: plain words, quotes, and lists of simple commands.
//!
//! Anything beyond that (substitutions, redirections, globs, subshells, functions, background) is not taken
//! apart but reported as not understood, and then no rule allows it and no class is lowered. Never guesses.

/// The words of one simple command, quotes removed.
pub(super) type Words = Vec<String>;

/// Splits a command line into its simple commands, or gives up.
pub(super) fn simple_commands(line: &str) -> Option<Vec<Words>> {
    let mut commands = vec![Words::new()];
    let mut word: Option<String> = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => end_word(&mut word, &mut commands),
            ';' | '\n' => {
                end_word(&mut word, &mut commands);
                commands.push(Words::new());
            }
            '|' | '&' => {
                end_word(&mut word, &mut commands);
                let is_doubled = letters.next_if_eq(&letter).is_some();
                let is_plain = match letter {
                    // `|&` also takes the errors, and a lone `&` runs in the background.
                    '|' => letters.peek() != Some(&'&'),
                    _ => is_doubled,
                };
                // An operator needs a command before it.
                if !is_plain || commands.last()?.is_empty() {
                    return None;
                }
                commands.push(Words::new());
            }
            '\'' => loop {
                match letters.next()? {
                    '\'' => {
                        word.get_or_insert_default();
                        break;
                    }
                    other => word.get_or_insert_default().push(other),
                }
            },
            '"' => double_quoted(&mut letters, word.get_or_insert_default())?,
            '\\' => match letters.next()? {
                '\n' => {}
                other => word.get_or_insert_default().push(other),
            },
            '$' | '`' | '<' | '>' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | ']' | '~' | '!' | '\r' => {
                return None;
            }
            '#' if word.is_none() => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    end_word(&mut word, &mut commands);
    let ends_open = commands.len() > 1
        && commands.last().is_some_and(Vec::is_empty)
        && line.trim_end().ends_with(['|', '&']);
    commands.retain(|words| !words.is_empty());
    let is_plain = !commands.is_empty() && !ends_open && commands.iter().all(|words| is_simple(words));
    is_plain.then_some(commands)
}

fn double_quoted(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, word: &mut String) -> Option<()> {
    loop {
        match letters.next()? {
            '"' => return Some(()),
            '$' | '`' => return None,
            '\\' => match letters.next()? {
                '\n' => {}
                quoted @ ('$' | '`' | '"' | '\\') => word.push(quoted),
                other => word.extend(['\\', other]),
            },
            // History expansion does not happen in `-c`, so `!` is plain here.
            other => word.push(other),
        }
    }
}

fn end_word(word: &mut Option<String>, commands: &mut [Words]) {
    if let (Some(done), Some(last)) = (word.take(), commands.last_mut()) {
        last.push(done);
    }
}

/// One simple command as a rule is compared with it: a word that only quotes hold together keeps them, so that it
/// passes for no two.
pub(super) fn to_line(words: &Words) -> String {
    let is_held = |word: &String| word.is_empty() || word.contains(char::is_whitespace);
    let shown = |word: &String| if is_held(word) { format!("'{word}'") } else { word.clone() };
    words.iter().map(shown).collect::<Vec<String>>().join(" ")
}

/// Not an assignment and not a word of the grammar.
fn is_simple(words: &[String]) -> bool {
    const GRAMMAR: [&str; 20] = [
        "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done",
        "in", "function", "time", "coproc", "[[", "]]", "!",
    ];
    words
        .first()
        .is_some_and(|first| !first.is_empty() && !first.contains('=') && !GRAMMAR.contains(&first.as_str()))
}

/// Whether a command line only reads: every simple command is known to. Doubt is no.
pub(super) fn only_reads(line: &str) -> bool {
    simple_commands(line).is_some_and(|commands| commands.iter().all(|words| command_only_reads(words)))
}

fn command_only_reads(words: &[String]) -> bool {
    let Some((name, args)) = words.split_first() else { return false };
    match name.as_str() {
        "basename" | "cat" | "cd" | "cmp" | "cut" | "df" | "dirname" | "du" | "echo" | "false" | "grep"
        | "head" | "id" | "ls" | "nl" | "printf" | "pwd" | "readlink" | "realpath" | "stat" | "test"
        | "tr" | "true" | "type" | "uname" | "wc" | "which" | "whoami" => {
            // `printf -v` and `test -v` touch shell variables only, which end with the shell.
            true
        }
        // They run other programs or write files when told to.
        "rg" => !args.iter().any(|arg| arg.starts_with("--pre") || arg.starts_with("--hostname-bin")),
        "tail" => !args.iter().any(|arg| {
            arg.starts_with("--f") || arg.starts_with("--retry") || is_short_with(arg, &['f', 'F'])
        }),
        "git" => git_only_reads(args),
        _ => false,
    }
}

fn is_short_with(arg: &str, letters: &[char]) -> bool {
    arg.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.contains(letters))
}

/// `git status|log|diff|show|rev-parse|ls-files|blame` without options that write or run something.
fn git_only_reads(args: &[String]) -> bool {
    let Some((verb, rest)) = args.split_first() else { return false };
    let is_reader =
        ["status", "log", "diff", "show", "rev-parse", "ls-files", "blame", "describe", "shortlog"]
            .contains(&verb.as_str());
    is_reader
        && !rest.iter().any(|arg| ["--output", "--ext-diff", "--textconv"].iter().any(|bad| means(arg, bad)))
}

/// Whether `arg` is this long option, also shortened as git takes it.
fn means(arg: &str, option: &str) -> bool {
    let name = arg.split('=').next().unwrap_or_default();
    name.len() > 2 && option.starts_with(name)
}

/// Rough pieces of a command line, for rules that forbid: split at everything that could begin a command, once as
/// if quotes did so too and once as if they were not there. Finds too much rather than too little, but no name that
/// is put together only when the command runs.
pub(super) fn rough_pieces(line: &str) -> Vec<String> {
    let line = line.replace("\\\n", "").replace(">&", ">").replace("<&", "<").replace("&>", ">");
    let line = without_descriptors(&line);
    let mut pieces = Vec::new();
    for piece in line.split(|letter| BREAKS.contains(&letter) || QUOTES.contains(&letter)) {
        rough_commands(piece, &mut pieces);
    }
    for piece in line.replace(QUOTES, "").split(BREAKS) {
        rough_commands(piece, &mut pieces);
    }
    pieces
}

const BREAKS: [char; 9] = [';', '|', '&', '\n', '(', ')', '{', '}', '`'];
const QUOTES: [char; 3] = ['"', '\'', '\\'];
/// What may stand before a command, and programs that run another.
const WRAPPERS: [&str; 27] = [
    "!", "builtin", "chroot", "command", "do", "doas", "elif", "else", "env", "eval", "exec", "if", "ionice",
    "nice", "nohup", "setsid", "stdbuf", "sudo", "then", "time", "timeout", "trap", "unbuffer", "until",
    "watch", "while", "xargs",
];

/// Makes each redirection a lone `>` and takes away the number before it.
fn without_descriptors(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for letter in line.chars() {
        if !matches!(letter, '<' | '>') {
            out.push(letter);
            continue;
        }
        let before = out.trim_end_matches(|letter: char| letter.is_ascii_digit());
        if before.is_empty() || before.ends_with(char::is_whitespace) {
            out.truncate(before.len());
        }
        out.push_str(" > ");
    }
    out
}

fn rough_commands(piece: &str, pieces: &mut Vec<String>) {
    let mut words = Vec::new();
    let mut all = piece.split_whitespace();
    while let Some(word) = all.next() {
        match word {
            // With the file's name; `>>` has come to two of them.
            ">" => drop(all.by_ref().find(|word| *word != ">")),
            word => words.push(word),
        }
    }
    let mut is_wrapped = false;
    for (i, word) in words.iter().enumerate() {
        let name = word.rsplit('/').next().unwrap_or(word);
        pieces.push(words[i..].join(" "));
        if name != *word {
            pieces.push([&[name], &words[i + 1..]].concat().join(" "));
        }
        // What of its words a wrapper takes for itself is not known here.
        is_wrapped |= WRAPPERS.contains(&name);
        if !is_wrapped && !word.contains('=') && !word.starts_with('-') {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, want: Option<&[&[&str]]>) {
        let want = want.map(|commands| {
            commands.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
        });
        assert_eq!(simple_commands(line), want, "{line}");
    }

    #[test]
    fn lists_of_plain_commands_are_taken_apart() {
        check("cargo test", Some(&[&["cargo", "test"]]));
        check(" a  b;c && d || e | f ;", Some(&[&["a", "b"], &["c"], &["d"], &["e"], &["f"]]));
        check(
            "git commit -m 'a; b' && echo \"x \\\" y\"",
            Some(&[&["git", "commit", "-m", "a; b"], &["echo", "x \" y"]]),
        );
        check("grep \"foo\\|bar\" a\\ b ''", Some(&[&["grep", "foo\\|bar", "a b", ""]]));
        check("a\nb", Some(&[&["a"], &["b"]]));
        check("echo a#b", Some(&[&["echo", "a#b"]]));
    }

    #[test]
    fn what_is_not_plain_is_not_understood() {
        for line in [
            "",
            ";",
            "echo $HOME",
            "echo `id`",
            "echo \"$(id)\"",
            "a > b",
            "a < b",
            "(a)",
            "{ a; }",
            "a &",
            "a & b",
            "ls *",
            "ls ?",
            "ls [ab]",
            "cat ~/x",
            "A=b c",
            "if a; then b; fi",
            "! a",
            "a 'b",
            "a \"b",
            "a \\",
            "a |& b",
            "| a",
            "a &&",
            "a |",
            "a && | b",
            "# note",
            "time ls",
            "a || || b",
            "for x in y; do z; done",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn only_what_is_known_to_read_is_pure() {
        for line in [
            "ls -la",
            "git status",
            "git log --oneline -5 | head -3",
            "cd src && rg -n foo",
            "cat a b; wc -l a",
            "tail -n 5 a",
            "echo hello",
        ] {
            assert!(only_reads(line), "{line}");
        }
        for line in [
            "cargo test",
            "ls > out",
            "cat $(x)",
            "git push",
            "git diff --output=x",
            "git log --outp x",
            "git -c alias.status=!sh status",
            "rg --pre sh x",
            "tail -f log",
            "tail -Fn1 log",
            "ls; rm x",
            "find . -delete",
            "sed -i s/a/b/ x",
            "echo hi | tee x",
            "./ls",
        ] {
            assert!(!only_reads(line), "{line}");
        }
    }

    #[test]
    fn rough_pieces_find_commands_wherever_they_hide() {
        for line in [
            "git push origin",
            "a && git push origin",
            "X=$(git push origin)",
            "sudo -n git push origin",
            "A=b env git push origin",
            "if a; then git push origin; fi",
            "bash -c 'git push origin'",
            "echo `git push origin`",
            "g\"\"it pu'sh' origin > log",
            "\\git push origin &",
            "git \\\n push origin 2>&1",
            "/usr/bin/git push origin",
            "if git push origin; then b; fi",
            "timeout -k 1 5 git push origin",
            "echo origin | xargs -n 1 git push origin",
            "2>&1 git push origin",
            "> log git push origin",
            "git push >> log origin",
        ] {
            assert!(rough_pieces(line).iter().any(|piece| piece == "git push origin"), "{line}");
        }
    }
}
