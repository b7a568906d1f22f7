import { isText } from '../store.ts'

/** A fact that a message states, before it is compared with what is known. */
export interface Fact {
  readonly content: string
  readonly category: string
  /** From 0 to 1. */
  readonly confidence: number
  readonly tags: readonly string[]
  /**
   * What the fact is about where only one can hold, such as `residence`: a later fact of the same subject replaces the
   * earlier one.
   */
  readonly subject?: string | undefined
  /** It says that something known has ended or was wrong. */
  readonly corrects?: boolean | undefined
  /** The id of the memory that it replaces, where the model named one. */
  readonly replaces?: string | undefined
  readonly relations?: readonly Triple[] | undefined
}
/** A relation between two entities, as it is told (API facts 2.6). */
export interface Triple {
  readonly subject: string
  readonly subject_type: string
  readonly relation: string
  readonly object: string
  readonly object_type: string
}
/** Whether the graph can keep it: it finds things by the letters and digits of their names. */
export const isNamed = (triple: Triple): boolean =>
  Object.values(triple).every((name: string) => /[\p{L}\p{N}]/u.test(name) && isText(name))
export const CATEGORIES = [
  'communication_style',
  'preference',
  'expertise',
  'work_style',
  'project_context',
  'personal_detail',
  'frustration',
] as const
