import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { TemplateFailed } from '../agents/contract.ts'
import type { TemplateCatalog } from './catalog.ts'
import { TemplateDetail, TemplateList, TemplateParams } from './schema.ts'

/** Interface 4.4, `/api/templates`. */
export function templateRoutes(catalog: () => Promise<TemplateCatalog>): readonly AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/templates',
      summary: 'The templates of agents',
      description:
        'Those that come with svc and those of `<home>/templates`, by name. `problems` names files that are no usable ' +
        'template, with line and key.',
      auth: 'bearer',
      effect: 'read',
      cost: 2,
      returns: TemplateList,
      async handle() {
        const [{ templates, bad }, { toProblem, toRow }] = await Promise.all([
          catalog().then((found) => found.list()),
          import('./view.ts'),
        ])
        return { templates: templates.map(toRow), total: templates.length, problems: bad.map(toProblem) }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/templates/:name',
      summary: 'A template with its manifest and its guide',
      description: '`template_failed` names file, line and key of what is wrong with one that cannot be used.',
      auth: 'bearer',
      effect: 'read',
      cost: 2,
      params: TemplateParams,
      returns: TemplateDetail,
      errors: ['template_not_found', TemplateFailed],
      async handle({ params: { name } }) {
        const [templates, { toDetail }] = await Promise.all([catalog(), import('./view.ts')])
        return toDetail(await templates.require(name))
      },
    }),
  ]
}
