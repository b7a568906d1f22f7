import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { PluginCatalog } from './catalog.ts'
import { Followers, PluginDetail, PluginParams, Plugins, Reloaded } from './schema.ts'
import type { PluginSharing } from './sharing/sharing.ts'

type Catalog = () => Promise<PluginCatalog>
type Sharing = () => Promise<PluginSharing | undefined>

/** Both load their code with the first request. */
export function listRoutes(catalog: Catalog, sharing: Sharing): readonly AnyRoute[] {
  return [listRoute(catalog), readRoute(catalog), followersRoute(sharing), reloadRoute(catalog)]
}

function listRoute(catalog: Catalog): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/plugins',
    summary: 'List the plugins',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: Plugins,
    handle: async () => (await catalog()).list(),
  })
}

function readRoute(catalog: Catalog): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/plugins/:name',
    summary: 'Read one plugin with everything it registered',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: PluginParams,
    returns: PluginDetail,
    errors: ['plugin_not_found'],
    handle: async ({ params }) => (await catalog()).read(params.name),
  })
}

function followersRoute(sharing: Sharing): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/plugins/:name/daemons',
    summary: 'What has come of the last installation or removal of a plugin at each daemon on the database',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: PluginParams,
    returns: Followers,
    handle: async ({ params }) => ({ daemons: [...((await (await sharing())?.followers(params.name)) ?? [])] }),
  })
}

function reloadRoute(catalog: Catalog): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/plugins/:name/reload',
    summary: 'Reload a plugin from its folder',
    description:
      'Answers `reloaded` when it is done. A plugin that this route itself depends on is reloaded after the answer, ' +
      '202 with `reloading`: its `reloads` and `error` show the outcome.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 50,
    params: PluginParams,
    returns: Reloaded,
    answers: { 202: { description: 'It is reloaded after this answer', json: Reloaded } },
    errors: ['plugin_not_found', 'conflict'],
    handle: async ({ params }) => (await catalog()).reload(params.name),
  })
}
