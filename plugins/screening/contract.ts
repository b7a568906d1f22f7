import { defineService } from 'svc/sdk'

export type FindingLevel = 'info' | 'warning' | 'critical'
export interface ScreeningFinding {
  readonly level: FindingLevel
  readonly rule: string
  /** The matching words, at most 120 characters; plain letters only. */
  readonly excerpt: string
}
export interface ScreeningResult {
  /** The highest level of the findings. */
  readonly level: 'none' | FindingLevel
  readonly findings: readonly ScreeningFinding[]
}

/** Finds prompt injections: text that addresses the model instead of the reader. It finds known phrases only. */
export interface Screening {
  /** Linear in the length of the text: some ten milliseconds for 1 MiB. */
  screen(text: string): Promise<ScreeningResult>
  /** One form for texts that look the same, such as names with letters of another script. */
  fold(text: string): Promise<string>
}
export const Screening = defineService<Screening>()('screening')
