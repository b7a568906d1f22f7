import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'
import openapiTS from 'openapi-typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

interface Operation {
  readonly summary?: string
  readonly 'x-cost'?: number
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema?: object }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}
type Content = Readonly<Record<string, { readonly schema?: object; readonly example?: unknown }>>

let host: TestHost
let document: {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}
beforeAll(async () => {
  host = await startHost({ memory: true })
  document = (await host.json('GET', '/api/openapi.json')).body
})
afterAll(() => host[Symbol.asyncDispose]())

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, operation })),
  )

describe('the OpenAPI document (Interface 9)', () => {
  it('is OpenAPI 3.0 to a schema validator', async () => {
    expect(document.openapi).toMatch(/^3\.0\./)
    const result = await new Validator().validate(structuredClone(document))
    expect(result.errors).toBeUndefined()
    expect(result.valid).toBe(true)
  })

  it('answers every DELETE with 200 and a body', () => {
    const removals = operations().filter(({ title }) => title.startsWith('DELETE '))
    expect(removals.length).toBeGreaterThan(10)
    for (const { title, operation } of removals) {
      const answers = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'))
      expect([title, ...answers.map(([status, { content }]) => [status, content !== undefined])]).toEqual([
        title,
        ['200', true],
      ])
    }
  })

  it('tells of every answer a route can give', () => {
    const statuses = (title: string): readonly string[] =>
      Object.keys(operations().find((one) => one.title === title)?.operation.responses ?? {})
    for (const { title, operation } of operations())
      if (!('101' in operation.responses))
        expect([title, statuses(title)]).toEqual([title, expect.arrayContaining(['400', '408', '431'])])
    expect(statuses('POST /api/plugins/{name}/reload')).toContain('202')
    expect(statuses('POST /api/webhooks/{id}/test')).toContain('502')
    expect(statuses('POST /api/pairing/notify')).toContain('502')
    expect(statuses('GET /api/auth/callback')).toEqual(expect.arrayContaining(['200', '303', '502']))
    expect(statuses('GET /api/auth/login')).toEqual(expect.arrayContaining(['302', '303', '502']))
    expect(statuses('POST /api/agents/{id}/upload')).toContain('409')
    const read = operations().find(({ title }) => title === 'GET /api/agents/{id}/files/{filename}')?.operation
    expect(Object.keys(read?.responses['200']?.content ?? {})).toEqual(['application/octet-stream', 'application/json'])
    const webhook = operations().find(({ title }) => title === 'PUT /api/webhooks/{id}')?.operation
    expect(webhook?.responses['200']?.content?.['application/json']?.schema).toMatchObject({
      properties: { secret: { nullable: true, enum: ['***', null] } },
    })
  })

  it('has patterns that every engine reads', () => {
    const found = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\\\]|\\\\.)*")/g)].map(([, text = '']) =>
      String(JSON.parse(text)),
    )
    expect(found.length).toBeGreaterThan(10)
    // Properties of Unicode, looks around and back, names: RE2, Python and others lack one or another.
    expect(found.filter((pattern) => /\\[pPuk]|\(\?(?!:)|\\[1-9]/.test(pattern))).toEqual([])
  })

  it('passes the linter of Redocly with the recommended rules and with valid examples', async () => {
    const config = await createConfig({
      extends: ['recommended'],
      rules: {
        'no-invalid-media-type-examples': 'error',
        'no-invalid-schema-examples': 'error',
        'no-unresolved-refs': 'error',
      },
    })
    const problems = await lintFromString({ source: JSON.stringify(document), config })
    const described = problems
      .filter(({ severity }) => severity === 'error')
      .map(
        ({ ruleId, message, location }) =>
          `${ruleId}: ${message} at ${location.map((at) => ('pointer' in at ? at.pointer : '')).join()}`,
      )
    expect(described).toEqual([])
  })

  it('says of every route what it takes, gives and refuses, with an example of each', () => {
    const missing = operations().flatMap(({ title, operation }) => {
      const wrong: string[] = []
      if ((operation.summary ?? '') === '') wrong.push('no summary')
      const body = operation.requestBody?.content['application/json']
      if (body && body.example === undefined) wrong.push('no example of the body')
      for (const [status, answer] of Object.entries(operation.responses)) {
        const json = answer.content?.['application/json']
        if (status.startsWith('2') && json && json.example === undefined) wrong.push(`no example of ${status}`)
      }
      if (!Object.keys(operation.responses).some((status) => /^[45]/.test(status))) wrong.push('no errors')
      return wrong.map((what) => `${title}: ${what}`)
    })
    expect(missing).toEqual([])
  })

  it('names the cost of a request, which is that of the table (security facts 1.8)', () => {
    const table: Readonly<Record<number, readonly string[]>> = {
      1: ['GET /', 'GET /api/health', 'GET /api/status', 'GET /api/version', 'GET /api/tools'],
      2: ['GET /api/agents', 'GET /api/config', 'GET /api/models'],
      3: ['GET /api/usage'],
      5: ['GET /api/audit/recent', 'GET /api/audit/verify'],
      10: ['PUT /api/agents/{id}/update', 'POST /api/config/set'],
      20: ['POST /api/providers/{name}/test', 'POST /api/webhooks/{id}/test'],
      30: [
        'POST /api/agents/{id}/message',
        'POST /api/agents/{id}/message/stream',
        'POST /v1/chat/completions',
        'POST /api/hooks/wake',
        'POST /api/hooks/agent',
      ],
      50: ['POST /api/agents', 'POST /api/agents/{id}/clone', 'POST /api/backup'],
      100: ['POST /api/restore'],
    }
    const costs = new Map(operations().map(({ title, operation }) => [title, operation['x-cost']]))
    const wrong = Object.entries(table).flatMap(([cost, titles]) =>
      titles
        .filter((title) => costs.get(title) !== Number(cost))
        .map((title) => `${title}: ${costs.get(title)} instead of ${cost}`),
    )
    expect(wrong).toEqual([])
  })

  it('can be made into a typed client that compiles, refuses what is wrong, and works', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-client-'))
    try {
      await symlink(join(import.meta.dirname, '..', '..', 'node_modules'), join(folder, 'node_modules'))
      await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
      // A copy: the generator works on what it is given.
      await writeFile(
        join(folder, 'schema.ts'),
        await openapiTS(structuredClone(document) as unknown as Parameters<typeof openapiTS>[0]),
      )
      await writeFile(join(folder, 'client.ts'), program)
      await writeFile(join(folder, 'mistakes.ts'), mistakes)
      expect(await compile(join(folder, 'client.ts'))).toEqual([])
      expect(await compile(join(folder, 'mistakes.ts'))).toEqual([
        'mistakes.ts(4): TS2554',
        'mistakes.ts(5): TS2322',
        'mistakes.ts(6): TS2322',
      ])
      const { talk }: { talk(url: string): Promise<unknown> } = await import(join(folder, 'client.ts'))
      expect(await talk(host.url)).toEqual({ answered: true, listed: true, missing: 'agent_not_found' })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

/** Errors of the compiler as file, line and code. */
async function compile(file: string): Promise<string[]> {
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--target',
    'es2024',
    '--module',
    'nodenext',
    '--allowImportingTsExtensions',
    '--types',
    'node',
    '--pretty',
    'false',
  ]
  const output = await promisify(execFile)('tsc', [...options, file]).then(
    () => '',
    (error: unknown) =>
      typeof error === 'object' && error !== null && 'stdout' in error ? String(error.stdout) : String(error),
  )
  return [...output.matchAll(/([\w-]+\.ts)\((\d+),\d+\): error (TS\d+)/g)].map(
    ([, name, line, code]) => `${name}(${line}): ${code}`,
  )
}
const program = `import createClient from 'openapi-fetch'
import type { paths } from './schema.ts'

export async function talk(baseUrl: string) {
  const client = createClient<paths>({ baseUrl })
  const spawned = await client.POST('/api/agents', { body: { manifest_toml: 'name = "typed"\\n[model]\\nprovider = "builtin"\\nmodel = "offline"\\n' } })
  if (!spawned.data) throw new Error('spawn answered ' + spawned.response.status)
  const id: string = spawned.data.agent_id
  const answer = await client.POST('/api/agents/{id}/message', { params: { path: { id } }, body: { message: 'hello' } })
  const list = await client.GET('/api/agents')
  const names: string[] = (list.data ?? []).map((agent) => agent.id)
  const unknown = await client.GET('/api/agents/{id}', { params: { path: { id: '0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d' } } })
  const missing: string | undefined = unknown.error && typeof unknown.error.error === 'object' ? unknown.error.error.code : undefined
  return { answered: (answer.data?.response.length ?? 0) > 0, listed: names.includes(id), missing }
}
`
const mistakes = `import createClient from 'openapi-fetch'
import type { paths } from './schema.ts'
const client = createClient<paths>({ baseUrl: '' })
await client.GET('/api/healthz')
await client.POST('/api/agents', { body: { manifest_toml: 5 } })
await client.POST('/api/agents/{id}/message', { params: { path: { id: 1 } }, body: { message: 'hello' } })
`
