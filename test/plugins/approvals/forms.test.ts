import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkContent } from '../../../plugins/approvals/form/check.ts'
import { parseForm } from '../../../plugins/approvals/form/parse.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { runHere } from '../../core/cli/here.ts'

const schema = {
  type: 'object',
  properties: {
    city: { type: 'string', title: 'City', description: 'Where to', minLength: 2, maxLength: 20 },
    email: { type: 'string', format: 'email' },
    nights: { type: 'integer', minimum: 1, maximum: 30, default: 2 },
    price: { type: 'number', maximum: 99.5 },
    quiet: { type: 'boolean', default: true },
    class: { type: 'string', enum: ['a', 'b'], enumNames: ['First', 'Second'] },
    meal: {
      type: 'string',
      oneOf: [
        { const: 'm', title: 'Meat' },
        { const: 'v', title: 'Vegan' },
      ],
      default: 'v',
    },
    extras: { type: 'array', items: { type: 'string', enum: ['wifi', 'pool', 'bar'] }, minItems: 1, maxItems: 2 },
    day: { type: 'string', format: 'date' },
    at: { type: 'string', format: 'date-time' },
    site: { type: 'string', format: 'uri' },
  },
  required: ['city', 'email'],
}
const form = parseForm({ schema })
const fill = (more: Record<string, unknown>) => checkContent(form, { city: 'Oslo', email: 'ada@example.org', ...more })

describe('what is filled in', () => {
  it('has the defaults of what was left out', () => {
    expect(fill({})).toEqual({ city: 'Oslo', email: 'ada@example.org', nights: 2, quiet: true, meal: 'v' })
  })

  it.each([
    [
      { nights: '3', price: '1.5', quiet: 'no', extras: 'wifi, bar' },
      { nights: 3, price: 1.5, quiet: false, extras: ['wifi', 'bar'] },
    ],
    [
      { class: 'Second', meal: 'Meat', extras: ['pool', 'pool'] },
      { class: 'b', meal: 'm', extras: ['pool'] },
    ],
    [{ day: '2028-02-29', at: '2026-11-30T18:00:00+01:00', site: 'https://example.org' }, { day: '2028-02-29' }],
    [
      { nights: null, quiet: '' },
      { nights: 2, quiet: true },
    ],
  ])('is read as what the field is: %o', (given, read) => {
    expect(fill(given)).toMatchObject(read)
  })

  it.each([
    [{ city: undefined }, 'city is needed'],
    [{ city: 'O' }, 'city needs at least 2 characters'],
    [{ city: 'x'.repeat(21) }, 'city can have at most 20 characters'],
    [{ city: 5 }, 'city has to be text'],
    [{ email: 'ada' }, 'email has to be an e-mail address'],
    [{ nights: 2.5 }, 'nights has to be a whole number'],
    [{ nights: 0 }, 'nights has to be 1 or more'],
    [{ price: '1e3' }, 'price has to be 99.5 or less'],
    [{ price: 'much' }, 'price has to be a number'],
    [{ quiet: 'perhaps' }, 'quiet has to be true or false'],
    [{ class: 'c' }, 'class has to be one of a, b'],
    [{ class: '' }, 'class has to be one of a, b'],
    [{ extras: [] }, 'extras needs at least 1 of wifi, pool, bar'],
    [{ extras: ['wifi', 'pool', 'bar'] }, 'extras can have at most 2 values'],
    [{ extras: ['sauna'] }, 'extras has to be a list of wifi, pool, bar'],
    [{ day: '2026-02-30' }, 'day has to be a date such as 2026-11-30'],
    [{ at: '2026-11-30' }, 'at has to be a date and time'],
    [{ site: 'example' }, 'site has to be an address'],
    [{ constructor: 'x' }, 'constructor is not a field of this form'],
  ])('is refused by field: %o', (given, problem) => {
    expect(() => fill(given)).toThrow(problem)
  })

  it.each([
    [{ type: 'object', properties: { a: { type: 'object' } } }],
    [{ type: 'string' }],
    [{ properties: { a: { type: 'string', format: 'secret' } } }],
    [{ properties: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`f${at}`, { type: 'boolean' }])) }],
    [{ properties: { a: { type: 'string', title: 'x'.repeat(2000) } } }],
    [{ properties: { a: { type: 'array', items: { type: 'string', enum: [] } } } }],
  ])('a form that cannot be shown is refused: %o', (bad) => {
    expect(() => parseForm({ schema: bad })).toThrow(/form/)
  })

  it('shows what would be hidden in a title', () => {
    expect(parseForm({ schema: { properties: { a: { type: 'boolean', title: 'a\u202eb' } } } }).fields[0]?.title).toBe(
      String.raw`a\u{202e}b`,
    )
  })
})

describe('a request with a form', () => {
  let host: TestHost
  let agent: string
  beforeAll(async () => {
    host = await startHost({
      plugins: ['audit', 'agents', 'approvals'],
      config: { plugins: { approvals: { two_people: [{}] } } },
    })
    agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "clerk"\n' })).body.agent_id
  })
  afterAll(() => host[Symbol.asyncDispose]())
  const ask = async (more: Record<string, unknown> = { form: { schema, title: 'Book' } }): Promise<string> =>
    (await host.json('POST', '/api/approvals', { agent_id: agent, action: 'book', ...more })).body.id
  const read = async (id: string) => (await host.json('GET', `/api/approvals/${id}`)).body

  it('shows its fields, stays open for a wrong answer, and keeps the right one', async () => {
    const id = await ask()
    expect(await read(id)).toMatchObject({
      // One person fills it in, whatever the rules for two are.
      approvals_needed: 1,
      scopes: ['once'],
      content: null,
      form: {
        title: 'Book',
        schema,
        fields: expect.arrayContaining([expect.objectContaining({ name: 'city', required: true })]),
      },
    })
    const wrong = await host.json('POST', `/api/approvals/${id}/approve`, { content: { nights: 99, what: 1 } })
    expect(wrong).toMatchObject({
      status: 400,
      body: {
        error: {
          code: 'invalid_request',
          details: {
            fields: { what: 'is not a field of this form', city: 'is needed', nights: 'has to be 30 or less' },
          },
        },
      },
    })
    expect(await host.json('POST', `/api/approvals/${id}/approve`)).toMatchObject({ status: 400 })
    const content = { city: 'Oslo', email: 'ada@example.org' }
    expect(await host.json('POST', `/api/approvals/${id}/approve`, { content })).toMatchObject({ status: 200 })
    expect(await read(id)).toMatchObject({ status: 'approved', content: { ...content, nights: 2, quiet: true } })
  })

  it('is declined by a rejection, without content', async () => {
    const id = await ask()
    await host.json('POST', `/api/approvals/${id}/reject`)
    expect(await read(id)).toMatchObject({ status: 'rejected', content: null })
  })

  it('is refused when it cannot be shown, and content needs a form', async () => {
    const bad = { agent_id: agent, action: 'book', form: { schema: { properties: { a: { type: 'null' } } } } }
    expect(await host.json('POST', '/api/approvals', bad)).toMatchObject({ status: 400 })
    const id = await ask({})
    expect(await host.json('POST', `/api/approvals/${id}/approve`, { content: { a: 1 } })).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining('has no form') } },
    })
    await host.json('POST', `/api/approvals/${id}/reject`)
  })

  it('is filled in on the command line', async () => {
    const id = await ask()
    const svc = (...args: string[]) => runHere(['approval', ...args, '--home', host.home])
    expect((await svc('show', id)).stdout).toContain('nights [whole number; 1 to 30; default 2; may be left out]')
    expect(await svc('approve', id, '--set', 'city')).toMatchObject({ code: 2 })
    const wrong = await svc('approve', id, '--set', 'city=Oslo')
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/email is needed[^]*add --set email=….*show/)])
    const done = await svc(
      'approve',
      id,
      '--set',
      'city=Rio = Brazil',
      '--set=email=ada@example.org',
      '--set',
      'nights=4',
    )
    expect(done).toMatchObject({ code: 0 })
    expect(await read(id)).toMatchObject({ content: { city: 'Rio = Brazil', email: 'ada@example.org', nights: 4 } })
  })
})
