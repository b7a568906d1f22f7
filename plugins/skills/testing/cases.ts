import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { isObject, parse, readJson, Refusal } from 'svc/sdk'
import type { ToolCallContext, Tools } from 'svc/sdk'
import type { SkillCatalog } from '../catalog.ts'
import { ifThere } from '../if-there.ts'
import { toolName } from '../manifest/skill.ts'
import type { Skill } from '../manifest/skill.ts'

export const TEST_FILE = 'skill.test.json'

/** A call of a tool with what must be in its answer, or words that must be in the text. */
const Case = v.union([
  v.strictObject({
    tool: v.string(),
    input: v.optional(v.record(v.string(), v.unknown()), {}),
    expect: v.optional(v.unknown()),
    fails: v.optional(v.boolean(), false),
  }),
  v.strictObject({ text: v.string() }),
])
type Case = v.InferOutput<typeof Case>
export interface CaseResult {
  readonly name: string
  readonly passed: boolean
  readonly message: string
}

/** Runs the tests of a skill, one after the other. Throws `not_found` when it has none, `invalid_request` for bad ones. */
export async function runCases(
  { catalog, tools }: { readonly catalog: SkillCatalog; readonly tools: Tools },
  skill: Skill,
  call: ToolCallContext,
): Promise<readonly CaseResult[]> {
  const content = await ifThere(readFile(join(skill.folder, TEST_FILE), 'utf8'))
  if (content === undefined) throw new Refusal('not_found', `The skill "${skill.name}" has no ${TEST_FILE}`)
  const results: CaseResult[] = []
  for (const [at, each] of readCases(content).entries()) {
    const name = `${at + 1}: ${'tool' in each ? each.tool : 'text'}`
    const message = await problemOf({ catalog, tools }, skill, each, { ...call, callId: `${call.callId}-${at}` })
    results.push({ name, passed: message === '', message })
  }
  return results
}

function readCases(content: string): readonly Case[] {
  let value: unknown
  try {
    value = readJson(content)
  } catch (cause) {
    throw new Refusal('invalid_request', `${TEST_FILE} is no JSON`, { cause })
  }
  return parse(v.array(Case), value, TEST_FILE)
}

/** Empty when it passed. */
async function problemOf(
  { catalog, tools }: { readonly catalog: SkillCatalog; readonly tools: Tools },
  skill: Skill,
  test: Case,
  call: ToolCallContext,
): Promise<string> {
  if ('text' in test)
    return (await catalog.text(skill)).includes(test.text) ? '' : `the text does not hold "${test.text}"`
  const { text, failed } = await tools.call(toolName(skill.name, test.tool), test.input, call)
  if (failed !== test.fails) return failed ? text : `it did not fail: ${text}`
  return test.expect === undefined || contains(toValue(text), test.expect)
    ? ''
    : `expected ${JSON.stringify(test.expect)}, got ${text}`
}
function toValue(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return text
  }
}
/** Whether the value has all that is expected: texts as a part, tables with more keys. */
function contains(value: unknown, expected: unknown): boolean {
  if (typeof expected === 'string') return typeof value === 'string' && value.includes(expected)
  if (Array.isArray(expected))
    return (
      Array.isArray(value) &&
      value.length === expected.length &&
      expected.every((each, at) => contains(value[at], each))
    )
  if (isObject(expected))
    return (
      isObject(value) &&
      Object.entries(expected).every(([key, each]) => contains(value[key as keyof typeof value], each))
    )
  return value === expected
}
