export const DEFAULT_TEMPLATE = 'This happened: {{event}}'

/** In one pass: an event that has the placeholder in it stays as it is. */
export function renderPrompt(template: string, event: string): string {
  return template.replaceAll('{{event}}', () => event)
}
