import { defineRoute } from 'svc/sdk'
import type { AnyRoute, Vault } from 'svc/sdk'
import type { SkillCatalog } from './catalog.ts'
import { Reloaded, SkillDetail, SkillList, SkillParams } from './schema.ts'

type Catalog = () => Promise<SkillCatalog>
const auth = 'bearer' as const

export function skillRoutes(catalog: Catalog, vault: Vault): readonly AnyRoute[] {
  return [listRoute(catalog), findRoute(catalog, vault), reloadRoute(catalog)]
}

function listRoute(catalog: Catalog): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/skills',
    summary: 'The skills there are',
    description: '`problems` names folders that are no usable skill, with file, line and key.',
    auth,
    effect: 'read',
    cost: 2,
    returns: SkillList,
    async handle() {
      const [skills, { toProblem, toRow }] = await Promise.all([catalog(), import('./view.ts')])
      return {
        skills: skills.all.map((skill) => toRow(skills, skill)),
        total: skills.all.length,
        problems: skills.bad.map(toProblem),
      }
    },
  })
}

function findRoute(catalog: Catalog, vault: Vault): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/skills/:name',
    summary: 'A skill with its text, tools, files and permissions',
    auth,
    effect: 'read',
    cost: 2,
    params: SkillParams,
    returns: SkillDetail,
    errors: ['not_found', 'conflict'],
    async handle({ params: { name } }) {
      const [skills, { toDetail }] = await Promise.all([catalog(), import('./view.ts')])
      return await toDetail(skills, skills.require(name), vault)
    },
  })
}

function reloadRoute(catalog: Catalog): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/skills/reload',
    summary: 'Read all skills again',
    description:
      'An edited skill of `<home>/skills` holds from the next turn without this; one that comes with svc needs it.',
    auth,
    effect: 'lasting',
    cost: 5,
    returns: Reloaded,
    async handle() {
      const [skills, { toProblem }] = await Promise.all([catalog(), import('./view.ts')])
      await skills.refresh({ all: true })
      return { status: 'reloaded' as const, total: skills.all.length, problems: skills.bad.map(toProblem) }
    },
  })
}
