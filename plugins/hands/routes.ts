import { defineRoute } from 'svc/sdk'
import type { AnyRoute, Effect } from 'svc/sdk'
import type { Runtime } from './runtime.ts'
import * as schema from './schema.ts'

type Open = () => Promise<Runtime>
const own = (effect: Effect, cost: number) => ({ auth: 'bearer' as const, effect, cost })
const unknownHand = { params: schema.HandParams, errors: ['not_found' as const] }
const unknownInstance = { params: schema.InstanceParams, errors: ['not_found' as const] }

/** Interface 4.7, `/api/hands`. */
export function handRoutes(open: Open): readonly AnyRoute[] {
  return [
    ...definitionRoutes(open),
    ...installRoutes(open),
    ...dependencyRoutes(open),
    ...settingsRoutes(open),
    ...instanceRoutes(open),
  ]
}

function definitionRoutes(open: Open): readonly AnyRoute[] {
  const list = defineRoute({
    ...own('read', 2),
    method: 'GET',
    path: '/api/hands',
    summary: 'The hands there are',
    description: '`problems` names files that are no usable hand, with line and key.',
    returns: schema.HandList,
    handle: async () => (await open()).views.list(),
  })
  const find = defineRoute({
    ...own('read', 2),
    ...unknownHand,
    method: 'GET',
    path: '/api/hands/:hand_id',
    summary: 'The definition of a hand',
    returns: schema.HandDetail,
    handle: async ({ params }) => (await open()).views.detail(params.hand_id),
  })
  const activate = defineRoute({
    ...own('lasting', 20),
    ...unknownHand,
    method: 'POST',
    path: '/api/hands/:hand_id/activate',
    summary: 'Make a running instance of a hand',
    description:
      'A second instance needs an `instance_name` of its own. `lacks` names settings without a needed value, and what is not there.',
    status: 201,
    idempotent: true,
    body: schema.ActivateHand,
    returns: schema.Instance,
    errors: ['not_found', 'conflict', 'rate_limit'],
    example: { body: { config: { topic: 'tides' }, instance_name: 'tides' } },
    recall: async (id) => (await open()).recall(id),
    handle: async ({ params, body, effectId }) => {
      const { instances, views } = await open()
      const { config, instance_name: name } = body
      return views.instance(await instances.activate(params.hand_id, { config, name, id: effectId }))
    },
  })
  return [list, find, activate]
}

function installRoutes(open: Open): readonly AnyRoute[] {
  const install = defineRoute({
    ...own('lasting', 20),
    method: 'POST',
    path: '/api/hands/install',
    summary: 'Install a hand',
    description:
      'One of `toml_content`, `source` and `slug`. It goes into `<home>/hands` of every daemon on the database. ' +
      'What addresses the model as a prompt injection does is refused.',
    status: 201,
    body: schema.InstallHand,
    returns: schema.Installed,
    errors: ['not_found', 'forbidden', 'conflict'],
    example: { body: { slug: 'researcher' } },
    handle: async ({ body }) => (await open()).install(body),
  })
  const remove = defineRoute({
    ...own('lasting', 10),
    method: 'DELETE',
    path: '/api/hands/:hand_id',
    summary: 'Remove an installed hand',
    description: 'One that comes with svc is refused, and one that has an instance.',
    params: schema.HandParams,
    returns: schema.Removed,
    errors: ['not_found', 'forbidden', 'conflict'],
    handle: async ({ params: { hand_id: id } }) => {
      await (await open()).remove(id)
      return { status: 'removed' as const, hand_id: id }
    },
  })
  return [install, remove]
}

function dependencyRoutes(open: Open): readonly AnyRoute[] {
  const check = defineRoute({
    ...own('read', 5),
    ...unknownHand,
    method: 'POST',
    path: '/api/hands/:hand_id/check-deps',
    summary: 'What a hand needs, and whether it is there',
    returns: schema.Dependencies,
    handle: async ({ params }) => (await open()).views.dependencies(params.hand_id),
  })
  const install = defineRoute({
    ...own('lasting', 50),
    ...unknownHand,
    method: 'POST',
    path: '/api/hands/:hand_id/install-deps',
    summary: 'Install the programs that a hand lacks',
    description: 'Waits for an approval that shows the commands, then runs them without a shell.',
    returns: schema.InstalledDependencies,
    handle: async ({ params, signal }) => (await open()).installDependencies(params.hand_id, signal),
  })
  return [check, install]
}

function settingsRoutes(open: Open): readonly AnyRoute[] {
  const path = '/api/hands/:hand_id/settings' as const
  const read = defineRoute({
    ...own('read', 2),
    ...unknownHand,
    method: 'GET',
    path,
    summary: 'The settings of a hand and their values',
    query: schema.InstanceQuery,
    returns: schema.SettingsView,
    handle: async ({ params, query }) => (await open()).settings(params.hand_id, query.instance),
  })
  const write = defineRoute({
    ...own('lasting', 5),
    ...unknownHand,
    method: 'PUT',
    path,
    summary: 'Change settings of an instance',
    description: 'What is left out stays. It holds from the next call of the model.',
    query: schema.InstanceQuery,
    body: schema.Values,
    returns: schema.SettingsSaved,
    errors: ['not_found', 'conflict'],
    example: { body: { topic: 'tides' } },
    handle: async ({ params, query, body }) => {
      const { instances } = await open()
      const { id, settings } = await instances.configure(params.hand_id, query.instance, body)
      return { status: 'ok' as const, hand_id: params.hand_id, instance_id: id, config: settings }
    },
  })
  return [read, write]
}

function instanceRoutes(open: Open): readonly AnyRoute[] {
  const list = defineRoute({
    ...own('read', 2),
    method: 'GET',
    path: '/api/hands/active',
    summary: 'The instances of hands',
    returns: schema.InstanceList,
    handle: async () => (await open()).views.instances(),
  })
  const change = (name: 'pause' | 'resume') =>
    defineRoute({
      ...own('lasting', 5),
      method: 'POST',
      path: `/api/hands/instances/:id/${name}`,
      summary: name === 'pause' ? 'Wake a hand no more' : 'Let a paused hand go on',
      params: schema.InstanceParams,
      returns: schema.Changed,
      errors: ['conflict'],
      handle: async ({ params: { id } }) => {
        await (await open()).instances[name](id)
        return { status: `${name}d`, instance_id: id }
      },
    })
  const remove = defineRoute({
    ...own('lasting', 5),
    method: 'DELETE',
    path: '/api/hands/instances/:id',
    summary: 'Deactivate and remove an instance with its agent',
    params: schema.InstanceParams,
    returns: schema.Changed,
    handle: async ({ params: { id } }) => {
      await (await open()).instances.deactivate(id)
      return { status: 'deactivated', instance_id: id }
    },
  })
  const stats = defineRoute({
    ...own('read', 2),
    ...unknownInstance,
    method: 'GET',
    path: '/api/hands/instances/:id/stats',
    summary: 'What an instance has recorded for its dashboard',
    returns: schema.Stats,
    handle: async ({ params }) => (await open()).views.stats(params.id),
  })
  const browser = defineRoute({
    ...own('read', 2),
    ...unknownInstance,
    method: 'GET',
    path: '/api/hands/instances/:id/browser',
    summary: 'What the browser of an instance shows',
    returns: schema.Browser,
    handle: async ({ params }) => (await open()).views.browser(params.id),
  })
  return [list, change('pause'), change('resume'), remove, stats, browser]
}
