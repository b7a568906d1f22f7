import * as v from 'valibot'
import { exits, Failure, findNearest, suggest } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const Variable = v.looseObject({
  name: v.string(),
  description: v.string(),
  required: v.boolean(),
  source: v.nullable(v.string()),
})
export type Variable = v.InferOutput<typeof Variable>
export const Variables = v.looseObject({ skill: v.string(), variables: v.array(Variable) })

export const skillArg = { type: 'positional', required: true, description: 'Name of the skill' } as const
export const pathOf = (skill: string): string => `/api/skills/${encodeURIComponent(skill)}/config`

/** Throws a `Failure` for a variable that the skill does not have. */
export async function requireVariable(client: DaemonClient, skill: string, name: string): Promise<void> {
  const { variables } = await client.call('GET', pathOf(skill), Variables)
  const names = variables.map((each) => each.name)
  if (names.includes(name)) return
  throw new Failure(
    exits.notFound,
    `the skill "${skill}" has no variable "${name}"${suggest(findNearest(name, names))}`,
    `it has ${names.join(', ') || 'none'}`,
  )
}
