import { Refusal } from 'svc/sdk'

export const DEFAULT_TEMPLATE = 'This happened: {{event}}'

/** Throws `invalid_request` for a placeholder that nothing replaces. */
export function checkTemplate(template: string): void {
  const [, name] = /\{\{\s*([\w.]+)\s*\}\}/.exec(template.replaceAll('{{event}}', '')) ?? []
  if (name === undefined) return
  const problem = `there is no placeholder {{${name.slice(0, 50)}}}; did you mean {{event}}?`
  throw new Refusal('invalid_request', `prompt_template: ${problem}`)
}

/** In one pass: an event that has the placeholder in it stays as it is. */
export function renderPrompt(template: string, event: string): string {
  return template.replaceAll('{{event}}', () => event)
}
