import { findNearest, suggest } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute, Tools } from 'svc/sdk'
import { ToolDetail, ToolNames, ToolParams } from './schema.ts'

export function toolRoutes(tools: Tools): readonly AnyRoute[] {
  const list = defineRoute({
    method: 'GET',
    path: '/api/tools',
    summary: 'List the tools agents can be given',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    returns: ToolNames,
    handle() {
      const names = tools.list().map((tool) => tool.name)
      return { tools: names, total: names.length }
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
