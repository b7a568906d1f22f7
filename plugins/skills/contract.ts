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
/** Something suspicious in files that a model is shown. */
export interface ScanFinding {
  readonly severity: 'critical' | 'warning' | 'info'
  readonly message: string
}
export interface Skills {
  /** By name, with changes of the files up to now. */
  list(): Promise<readonly SkillFacts[]>
  /**
   * Installs the skill in a folder of this machine; `isCheck` says only what it is. Throws `forbidden` for a critical
   * finding, `conflict` when there is one of its name or it asks for permissions, which are in the details then.
   */
  install(folder: string, options?: { readonly isCheck?: boolean }): Promise<{ readonly name: string }>
  /** Looks at files as at those of a skill that is installed: the worst first. A critical finding refuses them. */
  scan(found: {
    readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[]
    /** What was read of their manifest, whose texts are looked at as well. */
    readonly manifest: object
    /** Names of tools that they use. */
    readonly tools: readonly string[]
    /** As those of skills: `network:*`. */
    readonly permissions: readonly string[]
  }): Promise<readonly ScanFinding[]>
}
export const Skills = defineService<Skills>()('skills')

/** Skills were added, edited or removed; names of those that are new or have changed. */
export const SkillsChanged = notify<{ readonly changed: readonly string[]; readonly total: number }>('skills:changed')
