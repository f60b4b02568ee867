//! Chat templates, rendered as Hugging Face's `apply_chat_template` does.

use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;

use super::prompt::Message;

/// A template that cannot be read, or that refuses these messages.
#[derive(Debug, thiserror::Error)]
pub enum BadTemplate {
    /// The template's own `raise_exception`: meant for the consumer.
    #[error("{0}")]
    Raised(String),
    #[error("the model's chat template failed: {0}")]
    Failed(String),
}

pub(super) struct Template {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

const NAME: &str = "chat";

impl Template {
    pub(super) fn new(source: String, bos: String, eos: String) -> Result<Self, BadTemplate> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", tojson);
        environment
            .add_template_owned(NAME, source)
            .map_err(|error| BadTemplate::Failed(error.to_string()))?;
        Ok(Self { environment, bos, eos })
    }

    /// The text of the prompt, up to where the assistant's answer begins.
    pub(super) fn render(&self, messages: &[Message]) -> Result<String, BadTemplate> {
        let failed = |error: Error| BadTemplate::Failed(error.to_string());
        let template = self.environment.get_template(NAME).map_err(failed)?;
        let words = context! {
            messages,
            add_generation_prompt => true,
            bos_token => self.bos,
            eos_token => self.eos,
        };
        template.render(words).map_err(|error| match error.detail().and_then(|d| d.strip_prefix(RAISED)) {
            Some(message) => BadTemplate::Raised(message.to_owned()),
            None => failed(error),
        })
    }
}

/// Marks a template's own refusal among the errors of the template engine.
const RAISED: &str = "raised: ";

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
}

fn strftime_now(format: String) -> Result<String, Error> {
    jiff::fmt::strtime::format(&format, &jiff::Zoned::now())
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// Python's `json.dumps(ensure_ascii=False)`: minijinja's own filter escapes for HTML, which templates do not expect.
fn tojson(value: Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let _: Option<Value> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut out = Vec::new();
    let written = match indent {
        Some(width) => {
            let indent = " ".repeat(width.min(16));
            let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Spaced)),
    };
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    String::from_utf8(out).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// One line with a space after each comma and colon.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { w.write_all(b", ") }
    }
    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, w: &mut W) -> std::io::Result<()> {
        w.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[(&str, &str)]) -> Result<String, BadTemplate> {
        let messages: Vec<Message> = messages
            .iter()
            .map(|(role, content)| Message { role: (*role).to_owned(), content: (*content).to_owned() })
            .collect();
        Template::new(source.to_owned(), "<s>".to_owned(), "</s>".to_owned())?.render(&messages)
    }

    #[test]
    fn blocks_leave_no_lines_behind() {
        let source = "{{ bos_token }}{% for m in messages %}\n    {% if true %}\n[{{ m['role'] }}]{{ m.content.strip() }}\n    {% endif %}\n{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
        assert_eq!(render(source, &[("user", " hi ")]).unwrap(), "<s>[user]hi\n[assistant]");
    }

    #[test]
    fn a_template_may_refuse() {
        let refused = render("{{ raise_exception('roles must alternate') }}", &[("user", "x")]);
        assert!(matches!(refused, Err(BadTemplate::Raised(text)) if text == "roles must alternate"));
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        let json = render("{{ {'a': [1, '<é>'], 'b': none} | tojson }}", &[]).unwrap();
        assert_eq!(json, r#"{"a": [1, "<é>"], "b": null}"#);
    }
}
