import { defineService, notify } from 'svc/sdk'

/** A skill as others see it. */
export interface SkillFacts {
  readonly name: string
  readonly version: string
  readonly description: string
  /** With svc, or in `<home>/skills`. */
  readonly origin: 'bundled' | 'local'
  readonly enabled: boolean
}
export interface Skills {
  /** By name, with changes of the files up to now. */
  list(): Promise<readonly SkillFacts[]>
}
export const Skills = defineService<Skills>()('skills')

/** Skills were added, edited or removed; names of those that are new or have changed. */
export const SkillsChanged = notify<{ readonly changed: readonly string[]; readonly total: number }>('skills:changed')
