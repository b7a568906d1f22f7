import { findNearest, suggest } from 'svc/internal'
import { defineRoute, omitUndefined, Refusal } from 'svc/sdk'
import type { AnyRoute, ToolDescription, Tools } from 'svc/sdk'
import { ToolDetail, ToolNames, ToolParams, ToolsQuery } from './schema.ts'

export function toolRoutes(tools: Tools): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET',
    path: '/api/tools',
    summary: 'List the tools agents can be given',
    description: 'Their names; with `details=true` what each does as well.',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    query: ToolsQuery,
    returns: ToolNames,
    handle({ query }) {
      const list = tools.list()
      const names = list.map((tool) => tool.name)
      return omitUndefined({
        tools: names,
        total: names.length,
        details: query.details === 'true' ? list.map(toListed) : undefined,
      })
    },
  })

  const read = defineRoute({
    method: 'GET',
    path: '/api/tools/:name',
    summary: 'Read one tool with its input schema',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: ToolParams,
    returns: ToolDetail,
    errors: ['tool_not_found'],
    handle({ params }) {
      const tool = tools.find(params.name)
      if (!tool) {
        const names = tools.list().map(({ name }) => name)
        throw new Refusal('tool_not_found', `No tool ${params.name}${suggest(findNearest(params.name, names))}`)
      }
      const { name, description, input, risk, effect = 'conversation' } = tool
      return { name, description, input_schema: { ...input }, risk, effect }
    },
  })

  return [list, read]
}

const toListed = ({ name, title, description, risk, needs, source }: ToolDescription) => ({
  name,
  title: title ?? null,
  description,
  risk,
  needs: needs ?? null,
  source: source ?? null,
})
