/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id)

/** A new element. Children are elements and texts, never markup: names and errors of plugins are data. */
export function element(tag, properties = {}, ...children) {
  const { className, ...attributes } = properties
  const made = document.createElement(tag)
  if (className) made.className = className
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...children)
  return made
}

/** Shows a text, or hides its place when there is none. */
export function show(id, text) {
  const place = byId(id)
  place.textContent = text ?? ''
  place.hidden = !text
}

/** Terms and their values, those without a value left out. */
export function facts(rows) {
  return rows
    .filter(([, value]) => value)
    .flatMap(([term, value]) => [element('dt', {}, term), element('dd', {}, value)])
}

/** Runs the work with the button switched off, so that a second click does nothing. */
export async function whileBusy(button, label, work) {
  const before = button.textContent
  button.disabled = true
  button.textContent = label
  try {
    return await work()
  } finally {
    button.disabled = false
    button.textContent = before
  }
}
