import type * as v from 'valibot'
import { findNearest, suggest } from '../schema/nearest.ts'
import { MASKED_SECRET_MESSAGE } from '../schema/secret.ts'
import { describe, expectation, findSchema, isSecret, knownKeys } from './shape.ts'
import type { Schema } from './shape.ts'

/** One thing that is wrong with the configuration and keeps the daemon from starting. */
export interface ConfigProblem {
  /** A file, or `environment`, `flags`, `run time`. */
  readonly file: string
  readonly line?: number | undefined
  readonly column?: number | undefined
  /** Dotted key, such as `rate_limit.tokens_per_minute`. */
  readonly key?: string | undefined
  /** How the value was named there, when that differs from the key: `SVC_LOG_LEVEL`, `--port`. */
  readonly name?: string | undefined
  readonly expected?: string | undefined
  /** What is there instead; never the value of a secret. */
  readonly found?: string | undefined
  /** When there is no key to name, what happened. */
  readonly message?: string | undefined
}

export function printProblem(problem: ConfigProblem): string {
  const place =
    problem.line === undefined
      ? problem.file
      : `${problem.file}:${problem.line}${problem.column === undefined ? '' : `:${problem.column}`}`
  const what = problem.name ?? problem.key
  const text =
    problem.message ??
    `expected ${problem.expected ?? 'something else'}${problem.found === undefined ? '' : `, found ${problem.found}`}`
  return `${place}: ${what === undefined ? '' : `${what}: `}${text}`
}

/** The configuration cannot be used. Says where, which key, what was expected and what was found, for every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]
  constructor(problems: readonly ConfigProblem[], options: { readonly cause?: unknown } = {}) {
    super(problems.map(printProblem).join('\n'), options)
    this.problems = problems
  }
  get file(): string | undefined {
    return this.problems[0]?.file
  }
  get line(): number | undefined {
    return this.problems[0]?.line
  }
  get column(): number | undefined {
    return this.problems[0]?.column
  }
  get key(): string | undefined {
    return this.problems[0]?.key
  }
  get expected(): string | undefined {
    return this.problems[0]?.expected
  }
}

/** What to name as the file of a value that nobody wrote. */
export const NOWHERE = 'configuration'
/** Of one value that are told. */
export const MAX_ISSUES = 5

/**
 * Issues of parsing a merged value as problems of the files it came from. `prefix`: where the value stands in the
 * configuration.
 */
export function issueProblems(
  schema: Schema,
  issues: readonly v.BaseIssue<unknown>[],
  sources: ReadonlyMap<string, string>,
  prefix: readonly string[] = [],
): ConfigProblem[] {
  return issues.slice(0, MAX_ISSUES).map((issue) => {
    const { path, ...what } = explainIssue(schema, issue)
    const key = [...prefix, ...path]
    return { file: findPlace(sources, key, prefix.length + 1) ?? NOWHERE, key: key.join('.'), ...what }
  })
}
/** What is wrong, and where below the schema. */
export function explainIssue(
  schema: Schema,
  issue: v.BaseIssue<unknown>,
): Pick<ConfigProblem, 'expected' | 'found' | 'message'> & { readonly path: readonly string[] } {
  const path = (issue.path ?? []).map(({ key }) => String(key))
  const found = findSchema(schema, path)
  const name = path.at(-1) ?? ''
  if (!found && issue.expected === 'never') {
    const parent = findSchema(schema, path.slice(0, -1))
    return { path, message: `unknown key${suggest(findNearest(name, parent ? knownKeys(parent) : []))}` }
  }
  return {
    path,
    expected: ownWords(issue) ?? (found ? expectation(found) : (issue.expected ?? issue.message)),
    found: issue.input === undefined ? 'nothing' : describe(issue.input, isSecret(found, name)),
  }
}
/** What the rule that failed says itself: a value may have several. */
function ownWords({ kind, message }: v.BaseIssue<unknown>): string | undefined {
  return kind === 'validation' && !message.startsWith('Invalid ') && message !== MASKED_SECRET_MESSAGE
    ? message
    : undefined
}

/** Where a key is written, else a list that holds it (no shorter than `least`), else the first key below it. */
export function findPlace(
  sources: ReadonlyMap<string, string>,
  path: readonly string[],
  least = 1,
): string | undefined {
  for (let length = path.length; length >= least; length--) {
    const place = sources.get(path.slice(0, length).join('.'))
    if (place !== undefined) return place
  }
  const below = `${path.join('.')}.`
  for (const [key, place] of sources) if (path.length > 0 && key.startsWith(below)) return place
  return undefined
}
