"""A button that puts the address of the view on the clipboard."""

import streamlit as st

_HTML = '<button type="button" aria-live="polite">Copy link</button>'

_CSS = """
button {
  font: inherit; color: var(--st-text-color); background: transparent; cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius, 0.5rem);
  min-height: 2.5rem; min-width: 7.5rem; padding: 0 0.75rem; white-space: nowrap;
}
button:hover, button:focus-visible { border-color: var(--st-primary-color); color: var(--st-primary-color); }
"""

# The clipboard is closed to pages that are served without https from another machine: select and copy then.
_JS = """
export default function ({ parentElement }) {
  const button = parentElement.querySelector("button");
  button.onclick = async () => {
    const done = await copy(window.location.href);
    button.textContent = done ? "Copied" : "Copy the address bar";
    setTimeout(() => { button.textContent = "Copy link"; }, 2000);
  };
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.style.cssText = "position: fixed; opacity: 0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
"""

_component = st.components.v2.component("copy_link", html=_HTML, css=_CSS, js=_JS)


def copy_link() -> None:
    """Draw the button; it copies the address as it stands when clicked."""
    _component(key="copy_link", width="content", height="content")
