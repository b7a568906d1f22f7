import type { ConsolaInstance } from 'consola'
import { Refusal } from '../errors/error.ts'
import type { Hooks } from '../hooks/hook.ts'
import type { Routes } from '../http/route.ts'
import type { Jobs } from '../jobs/job.ts'
import { allowsHost } from '../net/host-patterns.ts'
import type { PluginNetwork } from '../net/connection.ts'
import { targetOf, targetOfWebSocket } from '../net/target.ts'
import type { Spawn, SpawnRequest } from '../process/child.ts'
import type { PluginDatabase, Value } from '../storage/database.ts'
import type { OwnTables } from '../storage/own-tables.ts'
import { toStatement } from '../storage/text.ts'
import type { SqlPart } from '../storage/text.ts'
import type { Vault } from '../storage/vault.ts'
import type { Tools } from '../tools/tool.ts'
import type { AnyPlugin } from './define.ts'
import type { Members } from './instance.ts'
import { coversPermission, permissionsOf } from './permissions.ts'

export interface PermissionDeps {
  readonly log: ConsolaInstance
  /** What the plugin may do with tables, as they are now. */
  readonly ownTables: () => Promise<OwnTables>
}
/** Throws a refusal unless the plugin declares the permission. */
type Require = (kind: string, name?: string) => void
/** Rejects with a refusal unless the statements use only tables of the plugin. */
type CheckSql = (...texts: readonly string[]) => Promise<void>

/** Members that refuse what the plugin does not declare in `uses`. */
export function restrictedMembers(members: Members, definition: AnyPlugin, deps: PermissionDeps): Members {
  const require = createRequire(definition, deps.log)
  const checkUrl = createHostCheck(definition, deps.log)
  const checkSql = createTableCheck(definition.name, require, deps)
  // Every member is listed: a new one is refused until it is decided here.
  return {
    storage: members.storage,
    metrics: members.metrics,
    routes: restrictRoutes(members.routes, require),
    credentials: {
      ...members.credentials,
      accept(source) {
        require('credentials')
        return members.credentials.accept(source)
      },
    },
    hooks: restrictHooks(members.hooks, definition.name, require),
    tools: restrictTools(members.tools, require),
    db: restrictDatabase(members.db, checkSql),
    vault: restrictVault(members.vault, require, checkSql),
    jobs: restrictJobs(members.jobs, require),
    ...restrictOutbound(members, checkUrl),
    ...(members.operator && { operator: restrictOutbound(members.operator, checkUrl) }),
    listen: async (options) => {
      require('listeners')
      return await members.listen(options)
    },
    spawn: restrictSpawn(members.spawn, definition.name, require, checkUrl),
  }
}

function restrictOutbound(network: PluginNetwork, checkUrl: (url: URL) => void): PluginNetwork {
  return {
    fetch: async (url, request) => {
      checkUrl(new URL(url))
      return await network.fetch(url, {
        ...request,
        // Redirects too.
        check(target) {
          checkUrl(target)
          request?.check?.(target)
        },
      })
    },
    admit: async (url) => {
      checkUrl(new URL(url))
      await network.admit(url)
    },
    connect: async (options) => {
      checkUrl(targetOf(options.host, options.port))
      return await network.connect(options)
    },
    webSocket: async (url, options) => {
      checkUrl(targetOfWebSocket(url))
      return await network.webSocket(url, options)
    },
    // Only for connections that are open.
    startTls: network.startTls,
  }
}

/** How each kind is declared. */
const DECLARED: Readonly<Record<string, (name: string) => string>> = {
  route: (name) => `uses: { routes: ['${name}'] }`,
  hook: (name) => `uses: { hooks: ['${name}'] }`,
  tool: (name) => `uses: { tools: ['${name}'] }`,
  host: (name) => `uses: { hosts: ['${name}'] }`,
  program: (name) => `uses: { programs: ['${name}'] }`,
  secret: (name) => `uses: { secrets: ['${name}'] }`,
  tables: () => 'uses: { tables: true }',
  jobs: () => 'uses: { jobs: true }',
  listeners: () => 'uses: { listeners: true }',
  credentials: () => 'uses: { credentials: true }',
}

function refusal(plugin: string, kind: string, name: string | undefined, log: ConsolaInstance): Refusal {
  const permission = name === undefined ? kind : `${kind}:${name}`
  const way = DECLARED[kind]?.(name ?? '') ?? 'uses'
  const text = `Plugin "${plugin}" may not use "${permission}": it does not declare it. Add ${way} to its definePlugin`
  log.warn(text)
  return new Refusal('forbidden', text)
}

function createRequire(definition: AnyPlugin, log: ConsolaInstance): Require {
  const permissions = permissionsOf(definition)
  return (kind, name) => {
    const wanted = name === undefined ? kind : `${kind}:${name}`
    if (!permissions.some((known) => coversPermission(known, wanted))) throw refusal(definition.name, kind, name, log)
  }
}

function createHostCheck({ name, uses }: AnyPlugin, log: ConsolaInstance): (url: URL) => void {
  const hosts = uses?.hosts ?? []
  return (url) => {
    if (!allowsHost(hosts, url)) throw refusal(name, 'host', url.host, log)
  }
}

function restrictRoutes(routes: Routes, require: Require): Routes {
  return {
    add(...added) {
      for (const { path } of added) require('route', path)
      routes.add(...added)
    },
    addSocket(...added) {
      for (const { path } of added) require('route', path)
      routes.addSocket(...added)
    },
  }
}

function restrictHooks(hooks: Hooks, plugin: string, require: Require): Hooks {
  const requireHook = (id: string): void => {
    if (!id.startsWith(`${plugin}:`)) require('hook', id)
  }
  return {
    on(hook, listener) {
      requireHook(hook.id)
      hooks.on(hook, listener)
    },
    async emit(hook, payload) {
      requireHook(hook.id)
      await hooks.emit(hook, payload)
    },
    async check(hook, payload) {
      requireHook(hook.id)
      await hooks.check(hook, payload)
    },
    async apply(hook, value) {
      requireHook(hook.id)
      return await hooks.apply(hook, value)
    },
  }
}

function restrictTools(tools: Tools, require: Require): Tools {
  return {
    add(...added) {
      for (const { name } of added) require('tool', name)
      tools.add(...added)
    },
    set(source, list) {
      for (const { name } of list) require('tool', name)
      tools.set(source, list)
    },
    list: () => tools.list(),
    find: (name) => tools.find(name),
    async call(name, args, call) {
      require('tool', name)
      return await tools.call(name, args, call)
    },
    async recover(name, args, call) {
      require('tool', name)
      return await tools.recover(name, args, call)
    },
    protectSecret: (value) => tools.protectSecret(value),
    containsSecret: (args) => tools.containsSecret(args),
  }
}

function createTableCheck(plugin: string, require: Require, { ownTables }: PermissionDeps): CheckSql {
  return async (...texts) => {
    if (texts.length === 0) return
    require('tables')
    const own = await ownTables()
    for (const text of texts) {
      const problem = own.problem(text)
      if (problem !== undefined)
        throw new Refusal('forbidden', `Plugin "${plugin}" uses its own tables only: ${problem}`)
    }
  }
}

function restrictDatabase(db: PluginDatabase, check: CheckSql): PluginDatabase {
  return {
    dialect: db.dialect,
    async all<T>(sql: TemplateStringsArray, ...values: (Value | SqlPart)[]) {
      await check(toStatement(sql, values).sql)
      return await db.all<T>(sql, ...values)
    },
    async one<T>(sql: TemplateStringsArray, ...values: (Value | SqlPart)[]) {
      await check(toStatement(sql, values).sql)
      return await db.one<T>(sql, ...values)
    },
    async run(sql, ...values) {
      await check(toStatement(sql, values).sql)
      return await db.run(sql, ...values)
    },
    sql: (sql, ...values) => db.sql(sql, ...values),
    async batch(statements) {
      await check(...statements.map(({ sql }) => sql))
      return await db.batch(statements)
    },
  }
}

function restrictVault(vault: Vault, require: Require, check: CheckSql): Vault {
  return {
    async read(name) {
      require('secret', name)
      return await vault.read(name)
    },
    async write(name, secret, entries = []) {
      require('secret', name)
      await check(...entries.map(({ sql }) => sql))
      await vault.write(name, secret, entries)
    },
    async remove(name, entries = []) {
      require('secret', name)
      await check(...entries.map(({ sql }) => sql))
      return await vault.remove(name, entries)
    },
    names: () => vault.names(),
  }
}

function restrictJobs(jobs: Jobs, require: Require): Jobs {
  return {
    cron(label, expression, run) {
      require('jobs')
      jobs.cron(label, expression, run)
    },
    every(label, ms, run) {
      require('jobs')
      jobs.every(label, ms, run)
    },
  }
}

/** Programs of a restricted plugin are always confined. */
function restrictSpawn(spawn: Spawn, plugin: string, require: Require, checkUrl: (url: URL) => void): Spawn {
  return {
    ...spawn,
    async start(request) {
      require('program', request.command)
      if (request.trust !== undefined || request.unconfined === true)
        throw new Refusal(
          'forbidden',
          `Plugin "${plugin}" declares what it uses, so its programs are confined: remove trust and unconfined ` +
            `from the start of "${request.command}"`,
        )
      return await spawn.start({ ...request, ...restrictNetwork(request, checkUrl) })
    },
  }
}
function restrictNetwork({ network }: SpawnRequest, checkUrl: (url: URL) => void): Pick<SpawnRequest, 'network'> {
  if (!network) return {}
  return {
    network: async (url) => {
      checkUrl(url)
      await network(url)
    },
  }
}
