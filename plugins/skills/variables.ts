import { findNearest, readSharedVariable, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Vault } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Skill, SkillVariable } from './manifest/skill.ts'

type Owner = Pick<Skill, 'name' | 'origin'>
/**
 * The record of the vault that holds the value of a variable. A skill that takes the name of one that comes with svc has
 * records of its own: what was entered for that one is not for its programs.
 */
const recordOf = ({ name, origin }: Owner, variable: string): string =>
  `skill:${name}${origin === 'local' ? '@local' : ''}:${variable}`

/** What a tool of the skill gets: the value of the vault, else that of the daemon's environment, else the default. */
export async function readVariableOf(
  vault: Vault,
  skill: Owner,
  { name, env, default: fallback }: SkillVariable,
): Promise<string | undefined> {
  return (await vault.read(recordOf(skill, name))) ?? readSharedVariable(env) ?? fallback
}

/** The variables of a skill and where their values are from, never the values. */
export async function showVariables(vault: Vault, skill: Skill) {
  const stored = new Set(await vault.names())
  return skill.variables.map(({ name, description, required, env, default: fallback }) => {
    const source = stored.has(recordOf(skill, name))
      ? ('vault' as const)
      : readSharedVariable(env) !== undefined
        ? ('environment' as const)
        : fallback === undefined
          ? null
          : ('default' as const)
    return { name, description, required, has_value: source !== null, source }
  })
}

/** `null` removes a value. Throws `invalid_request` for a variable that the skill does not have: nothing is done. */
export async function setVariables(
  { vault, audit }: { readonly vault: Vault; readonly audit: Audit },
  skill: Skill,
  values: Readonly<Record<string, string | null>>,
): Promise<void> {
  const known = skill.variables.map(({ name }) => name)
  const unknown = Object.keys(values).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new Refusal(
      'invalid_request',
      `values.${unknown}: the skill "${skill.name}" has no such variable${suggest(findNearest(unknown, known))}; ` +
        `it has ${known.join(', ') || 'none'}`,
    )
  for (const [name, value] of Object.entries(values)) {
    const what = value === null ? 'removed' : 'set'
    const entry = audit.entry({ event: 'skill_changed', details: `skill ${skill.name}: variable ${name} ${what}` })
    if (value === null) await vault.remove(recordOf(skill, name), [entry])
    else await vault.write(recordOf(skill, name), value, [entry])
  }
}

/** Removes what the vault holds for a skill of the home, also for variables that it had before an update. */
export async function clearVariables(vault: Vault, name: string): Promise<void> {
  const prefix = recordOf({ name, origin: 'local' }, '')
  for (const record of await vault.names()) if (record.startsWith(prefix)) await vault.remove(record)
}
