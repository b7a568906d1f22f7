import { enforced } from '../scope/enforcement.ts'
import type { Screening } from './screen.ts'

export type { Finding, Level, Screening } from './screen.ts'

/** Looks for text that speaks to a model instead of about something; the lists are imported with the first text. */
export async function screenText(text: string): Promise<Screening> {
  const { screen } = await import('./screen.ts')
  const screening = screen(text)
  if (screening.level === 'critical' || screening.level === 'warning') enforced('prompt_injection_scanning')
  return screening
}
