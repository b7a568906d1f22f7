import { effects } from '../auth/authority.ts'
import type { AnyRoute, AnySocketRoute, Routes } from '../http/route.ts'
import type { Jobs } from '../jobs/job.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { isObject } from '../schema/object.ts'
import type { AnyTool, Tools } from '../tools/tool.ts'
import { PluginProblem } from './definition.ts'
import type { Members } from './instance.ts'

/** The problem with one field and how to fix it; `undefined` if it is valid. */
type Check = (value: unknown) => string | undefined
type Checks = Readonly<Record<string, Check>>

const oneOf =
  (names: readonly string[]): Check =>
  (value) =>
    names.some((name) => name === value)
      ? undefined
      : `is ${show(value)}; write one of ${names.join(', ')}${suggest(findNearest(String(value), names))}`
const text =
  (example: string): Check =>
  (value) =>
    typeof value === 'string' && value.trim() !== ''
      ? undefined
      : `is ${show(value)}; write a text such as "${example}"`
const callable =
  (example: string): Check =>
  (value) =>
    typeof value === 'function' ? undefined : `is ${show(value)}; write a function such as ${example}`
const schema =
  (example: string): Check =>
  (value) =>
    isSchema(value) ? undefined : `is ${show(value)}; write a valibot schema such as ${example}`
const tokens: Check = (value) =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0
    ? undefined
    : `is ${show(value)}; write how many limiter tokens it costs, such as 1`
const path: Check = (value) =>
  typeof value === 'string' && value.startsWith('/')
    ? undefined
    : `is ${show(value)}; write a path that begins with a slash, such as "/api/things/:id"`
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined ? undefined : check(value)

const routeChecks: Checks = {
  method: oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
  path,
  summary: text('List the things'),
  auth: oneOf(['public', 'bearer', 'signed']),
  // Plugins written without types may omit it: then only the owner may call the route.
  effect: optional(oneOf(effects)),
  cost: tokens,
  params: optional(schema('v.object({ id: v.string() })')),
  query: optional(schema('v.object({ limit: v.optional(v.string()) })')),
  body: optional((value) =>
    isObject(value) && value['~body'] === 'raw'
      ? undefined
      : schema('v.object({ name: v.string() }), or rawBody(1_000_000)')(value),
  ),
  returns: schema('v.object({ text: v.string() })'),
  status: optional((value) =>
    [200, 201, 202, 204, 302].some((status) => status === value)
      ? undefined
      : `is ${show(value)}; write one of 200, 201, 202, 204, 302`,
  ),
  handle: callable('({ params }) => ({ text: params.id })'),
}
const socketChecks: Checks = {
  path,
  summary: text('Follow the things'),
  auth: oneOf(['public', 'bearer']),
  effect: optional(oneOf(effects)),
  cost: tokens,
  frameCost: tokens,
  params: optional(schema('v.object({ id: v.string() })')),
  query: optional(schema('v.object({ since: v.optional(v.string()) })')),
  accept: callable('() => ({})'),
  open: callable('(socket) => socket.send("hello")'),
  frame: callable('(socket, state, text) => socket.send(text)'),
}
const toolChecks: Checks = {
  name: (value) =>
    typeof value === 'string' && /^[a-z][a-z0-9_]{0,63}$/.test(value)
      ? undefined
      : `is ${show(value)}; write snake_case of at most 64 characters, such as "my_tool"`,
  description: text('Greets somebody by name.'),
  input: schema('v.object({ name: v.string() })'),
  risk: oneOf(['read', 'write', 'execute']),
  timeoutSecs: optional((value) =>
    typeof value === 'number' && value > 0 ? undefined : `is ${show(value)}; write a number of seconds above 0`,
  ),
  run: callable('async ({ name }) => `Hello, ${name}`'),
}

/**
 * Members that validate what a plugin registers. The types say the same, but not every author uses them; plugins that
 * ship with the daemon are type-checked.
 */
export function checkedMembers(members: Members, plugin: string): Members {
  return {
    ...members,
    routes: checkedRoutes(members.routes, plugin),
    tools: checkedTools(members.tools, plugin),
    jobs: checkedJobs(members.jobs, plugin),
  }
}

function checkedRoutes(routes: Routes, plugin: string): Routes {
  return {
    add(...added) {
      for (const route of added) check(plugin, nameOfRoute(route), route, routeChecks)
      routes.add(...added)
    },
    addSocket(...added) {
      for (const route of added) check(plugin, `WebSocket ${nameOfPath(route)}`, route, socketChecks)
      routes.addSocket(...added)
    },
  }
}

function checkedTools(tools: Tools, plugin: string): Tools {
  return {
    ...tools,
    add(...added) {
      for (const tool of added) check(plugin, nameOfTool(tool), tool, toolChecks)
      tools.add(...added)
    },
  }
}

function checkedJobs(jobs: Jobs, plugin: string): Jobs {
  const checkJob = (label: unknown, schedule: string | undefined, run: unknown): void => {
    const problems = [
      ...describe('label', text('tidy')(label)),
      ...(schedule === undefined ? [] : [schedule]),
      ...describe('run', callable('async (signal) => {}')(run)),
    ]
    fail(plugin, `job ${typeof label === 'string' ? label : 'without a label'}`, problems)
  }
  return {
    cron(label, expression, run) {
      checkJob(label, cronProblem(expression), run)
      jobs.cron(label, expression, run)
    },
    every(label, ms, run) {
      const isInterval = typeof ms === 'number' && ms > 0 && ms <= MAX_INTERVAL_MS
      checkJob(
        label,
        isInterval ? undefined : `ms is ${show(ms)}; write milliseconds from 1 to ${MAX_INTERVAL_MS}`,
        run,
      )
      jobs.every(label, ms, run)
    },
  }
}

/** The maximum delay of a timer. */
const MAX_INTERVAL_MS = 2 ** 31 - 1
const CRON_FIELD = /^[\d*?/,\-#LW]+$|^[A-Za-z]{3}([,-][A-Za-z]{3})*$/
function cronProblem(expression: unknown): string | undefined {
  const fields = typeof expression === 'string' ? expression.trim().split(/\s+/) : []
  if (fields.length === 5 && fields.every((field) => CRON_FIELD.test(field))) return undefined
  return `expression is ${show(expression)}; write minute, hour, day, month and day of the week, such as "0 3 * * *"`
}

function check(plugin: string, what: string, registered: unknown, checks: Checks): void {
  if (!isObject(registered)) return fail(plugin, what, [`it is ${show(registered)}; write an object`])
  fail(
    plugin,
    what,
    Object.entries(checks).flatMap(([field, run]) => describe(field, run(registered[field]))),
  )
}
function describe(field: string, problem: string | undefined): readonly string[] {
  return problem === undefined ? [] : [`${field} ${problem}`]
}
function fail(plugin: string, what: string, problems: readonly string[]): void {
  if (problems.length > 0) throw new PluginProblem(`plugin "${plugin}", ${what}: ${problems.join('. ')}`)
}

function isSchema(value: unknown): boolean {
  return isObject(value) && value['kind'] === 'schema'
}
function show(value: unknown): string {
  if (value === undefined) return 'missing'
  if (typeof value === 'string') return `"${value}"`
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value)
  return Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`
}
const nameOfPath = (route: AnyRoute | AnySocketRoute): string =>
  isObject(route) && typeof route['path'] === 'string' ? route['path'] : 'without a path'
const nameOfRoute = (route: AnyRoute): string =>
  `route ${isObject(route) && typeof route['method'] === 'string' ? `${route['method']} ` : ''}${nameOfPath(route)}`
const nameOfTool = (tool: AnyTool): string =>
  `tool ${isObject(tool) && typeof tool['name'] === 'string' ? tool['name'] : 'without a name'}`
