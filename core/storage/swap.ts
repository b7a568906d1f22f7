import {
  existsSync,
  fsyncSync,
  openSync,
  closeSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { codeOf } from './failure.ts'
import { syncFolder } from './sqlite-file.ts'

/** What is at `to` goes to `keep`; then `from` takes its place, if there is one. All on one file system. */
const Move = v.object({ from: v.nullable(v.string()), to: v.string(), keep: v.string() })
const Plan = v.object({
  id: v.string(),
  planned_at: v.string(),
  facts: v.record(v.string(), v.union([v.string(), v.number(), v.null()])),
  moves: v.array(Move),
})
/**
 * Files and folders that take the place of others, all of them or none. Done while nothing has them open; a run that
 * was killed is gone on with at the next start, before anything is opened.
 */
export type SwapPlan = v.InferOutput<typeof Plan>

const PENDING = 'restore.json'
const DONE = 'restored.json'

/** From here on the swap will happen, whatever becomes of this process. */
export function planSwap(home: string, plan: SwapPlan): void {
  put(join(home, PENDING), plan)
}
function pendingSwap(home: string): SwapPlan | undefined {
  return read(join(home, PENDING))
}

/**
 * Carries out what is planned; `undefined` when nothing is. Every step says by itself whether it was taken before, so
 * that it may be called again after a kill at any moment. The caller holds the lock of the home.
 */
export function completeSwap(home: string): SwapPlan | undefined {
  const plan = pendingSwap(home)
  if (!plan) return undefined
  for (const { from, to, keep } of plan.moves) {
    // What waits to come in is gone only when it came in.
    const isDone = from === null ? existsSync(keep) : !existsSync(from)
    if (isDone) continue
    if (existsSync(to)) move(to, keep)
    if (from !== null) move(from, to)
  }
  renameSync(join(home, PENDING), join(home, DONE))
  syncFolder(home)
  return plan
}

/** What was carried out and not told of yet. */
export function completedSwap(home: string): SwapPlan | undefined {
  return read(join(home, DONE))
}
export function forgetSwap(home: string): void {
  rmSync(join(home, DONE), { force: true })
}

function move(from: string, to: string): void {
  renameSync(from, to)
  syncFolder(dirname(to))
  if (dirname(from) !== dirname(to)) syncFolder(dirname(from))
}
function read(file: string): SwapPlan | undefined {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Plan), text)
  if (!parsed.success)
    throw new Error(`${file} cannot be read: it says which restore is under way. If none is, remove it`)
  return parsed.output
}
function put(file: string, plan: SwapPlan): void {
  const draft = `${file}.new`
  writeFileSync(draft, '', { mode: 0o600 })
  const handle = openSync(draft, 'r+')
  try {
    writeSync(handle, `${JSON.stringify(plan)}\n`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(draft, file)
  syncFolder(dirname(file))
}
