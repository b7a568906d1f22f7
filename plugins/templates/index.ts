import { join } from 'node:path'
import * as v from 'valibot'
import { bundledTemplates, Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents, TemplateAsked } from '../agents/contract.ts'
import type { TemplateCatalog } from './catalog.ts'
import { templateRoutes } from './routes.ts'

export default definePlugin({
  name: 'templates',
  version: '1.0.0',
  config: v.object({}),
  requires: { agents: Agents, daemon: Daemon },
  setup({ hooks, routes, services: { agents, daemon } }) {
    const local = join(daemon.config().homeDir, 'templates')
    const open = async (): Promise<TemplateCatalog> => {
      const { TemplateCatalog } = await import('./catalog.ts')
      return new TemplateCatalog({
        roots: { bundled: bundledTemplates(), local },
        readManifest: (toml) => agents.readManifest(toml),
      })
    }
    let opened: Promise<TemplateCatalog> | undefined
    const catalog = (): Promise<TemplateCatalog> => (opened ??= open())
    routes.add(...templateRoutes(catalog))
    hooks.on(TemplateAsked, async (asked) => {
      const { templates, bad } = await (await catalog()).list()
      const names = [...asked.names, ...templates.map(({ name }) => name)]
      if (![...templates, ...bad].some(({ name }) => name === asked.name)) return { ...asked, names }
      const { toml, origin } = await (await catalog()).require(asked.name)
      return { ...asked, names, found: { toml, isShipped: origin === 'bundled' } }
    })
    return {}
  },
})
