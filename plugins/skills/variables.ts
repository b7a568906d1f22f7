import { findNearest, readVariable, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Vault } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Skill, SkillVariable } from './manifest/skill.ts'

/** The record of the vault that holds the value of a variable. */
const recordOf = (skill: string, variable: string): string => `skill:${skill}:${variable}`

/** What a tool of the skill gets: the value of the vault, else that of the daemon's environment, else the default. */
export async function readVariableOf(
  vault: Vault,
  skill: string,
  { name, env, default: fallback }: SkillVariable,
): Promise<string | undefined> {
  return (await vault.read(recordOf(skill, name))) ?? readVariable(env) ?? fallback
}

/** The variables of a skill and where their values are from, never the values. */
export async function showVariables(vault: Vault, { name: skill, variables }: Skill) {
  const stored = new Set(await vault.names())
  return variables.map(({ name, description, required, env, default: fallback }) => {
    const source = stored.has(recordOf(skill, name))
      ? ('vault' as const)
      : readVariable(env) !== undefined
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
  { name: skill, variables }: Skill,
  values: Readonly<Record<string, string | null>>,
): Promise<void> {
  const known = variables.map(({ name }) => name)
  const unknown = Object.keys(values).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new Refusal(
      'invalid_request',
      `values.${unknown}: the skill "${skill}" has no such variable${suggest(findNearest(unknown, known))}; ` +
        `it has ${known.join(', ') || 'none'}`,
    )
  for (const [name, value] of Object.entries(values)) {
    const what = value === null ? 'removed' : 'set'
    const entry = audit.entry({ event: 'skill_changed', details: `skill ${skill}: variable ${name} ${what}` })
    if (value === null) await vault.remove(recordOf(skill, name), [entry])
    else await vault.write(recordOf(skill, name), value, [entry])
  }
}

/** Removes what the vault holds for a skill, also for variables that it had before an update. */
export async function clearVariables(vault: Vault, skill: string): Promise<void> {
  for (const name of await vault.names()) if (name.startsWith(recordOf(skill, ''))) await vault.remove(name)
}
