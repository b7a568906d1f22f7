import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute, Vault } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { SkillCatalog } from './catalog.ts'
import { SkillParams, SkillVariable } from './schema.ts'

const View = v.object({
  skill: v.string(),
  variables: v.array(SkillVariable),
})
const Value = v.pipe(v.string(), v.minLength(1, 'must not be empty'), v.maxLength(8192, 'at most 8192 characters'))
const Change = v.object({
  values: v.optional(
    v.pipe(
      v.record(v.pipe(v.string(), v.maxLength(128)), v.nullable(Value)),
      v.check((values) => Object.keys(values).length <= 100, 'at most 100'),
    ),
    {},
  ),
})
interface ConfigDeps {
  readonly catalog: () => Promise<SkillCatalog>
  readonly vault: Vault
  readonly audit: Audit
}
const load = () => import('./variables.ts')
const path = '/api/skills/:name/config'
const common = { auth: 'bearer', params: SkillParams, errors: ['not_found', 'conflict'] } as const

/** The values of the variables that tools of a skill get. They are in the vault, and no route shows them. */
export function configRoutes(deps: ConfigDeps): readonly AnyRoute[] {
  const show = async (name: string): Promise<v.InferOutput<typeof View>> => {
    const skill = (await deps.catalog()).require(name)
    return { skill: name, variables: await (await load()).showVariables(deps.vault, skill) }
  }
  return [
    defineRoute({
      ...common,
      method: 'GET',
      path,
      summary: 'The variables of a skill, and where their values are from',
      effect: 'read',
      cost: 2,
      returns: View,
      handle: ({ params: { name } }) => show(name),
    }),
    defineRoute({
      ...common,
      method: 'PUT',
      path,
      summary: 'Set variables of a skill',
      description: '`values` by name, kept in the vault. `null` removes one; those that are not named stay.',
      effect: 'lasting',
      cost: 5,
      body: Change,
      shown: async ({ params: { name } }) => ({ fields: await show(name) }),
      returns: View,
      example: { body: { values: { API_KEY: 'a value' } } },
      async handle({ params: { name }, body: { values } }) {
        const { setVariables } = await load()
        await setVariables(deps, (await deps.catalog()).require(name), values)
        return await show(name)
      },
    }),
    defineRoute({
      ...common,
      method: 'DELETE',
      path,
      summary: 'Remove the values that the vault holds for a skill',
      effect: 'lasting',
      cost: 5,
      returns: View,
      async handle({ params: { name } }) {
        const { setVariables, showVariables } = await load()
        const skill = (await deps.catalog()).require(name)
        const stored = (await showVariables(deps.vault, skill)).filter(({ source }) => source === 'vault')
        await setVariables(deps, skill, Object.fromEntries(stored.map((each) => [each.name, null])))
        return await show(name)
      },
    }),
  ]
}
