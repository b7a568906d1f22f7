import type { Manifest } from '../agents/contract.ts'
import { allowsSkill } from './allowed.ts'
import type { SkillCatalog } from './catalog.ts'

/** A description that is shorter says too little to choose by: then names alone are listed. */
const MIN_DESCRIPTION = 40
const HEAD =
  '# Skills\n' +
  'Each line below names a skill: instructions, and sometimes tools, for one kind of task. When a task fits one, read ' +
  'it with skill_describe before you begin.'

interface Built {
  readonly revision: number
  readonly text: string
}

/** What the system prompt says of skills: made once for each agent and change of a skill. */
export class SkillPrompt {
  readonly #catalog: SkillCatalog
  readonly #maxChars: number
  readonly #built = new WeakMap<Manifest, Built>()
  constructor(catalog: SkillCatalog, maxChars: number) {
    this.#catalog = catalog
    this.#maxChars = maxChars
  }

  /** Empty for an agent that has no skill. */
  for(manifest: Manifest): string {
    const { revision } = this.#catalog
    const known = this.#built.get(manifest)
    if (known?.revision === revision) return known.text
    const text = render(
      this.#catalog.enabled.filter(({ name }) => allowsSkill(manifest, name)),
      this.#maxChars,
    )
    this.#built.set(manifest, { revision, text })
    return text
  }
}

interface Listed {
  readonly name: string
  readonly description: string
}

/**
 * Names with descriptions in full, else cut to an equal share of `maxChars`, else the names alone, as many as there is
 * room for.
 */
export function render(skills: readonly Listed[], maxChars: number): string {
  if (skills.length === 0) return ''
  const full = skills.map(({ name, description }) => `- ${name}: ${description}`)
  if (charsOf(full) <= maxChars) return [HEAD, ...full].join('\n')
  const names = skills.map(({ name }) => `- ${name}`)
  const share = Math.floor((maxChars - charsOf(names)) / skills.length) - 2
  if (share >= MIN_DESCRIPTION)
    return [HEAD, ...skills.map(({ name, description }) => `- ${name}: ${cut(description, share)}`)].join('\n')
  let left = maxChars
  const shown = names.filter((line) => (left -= line.length + 1) >= 0)
  const rest = names.length - shown.length
  return [
    `${HEAD} skill_list tells what each is for.`,
    ...shown,
    ...(rest > 0 ? [`There are ${rest} more: find them with skill_list.`] : []),
  ].join('\n')
}
const charsOf = (lines: readonly string[]): number => lines.reduce((sum, line) => sum + line.length + 1, 0)
const cut = (text: string, max: number): string => (text.length <= max ? text : `${text.slice(0, max - 1).trimEnd()}…`)
