import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import type { Task } from '../contract.ts'
import type { TaskView } from '../schema.ts'
import { STATUSES } from '../statuses.ts'

const nullable = v.nullable(v.string())
const Texts = v.array(v.string())
const textsJson = v.pipe(
  v.string(),
  v.check((json) => v.is(Texts, readJson(json))),
)
/** A row of the table. */
export const StoredTask = v.object({
  id: v.string(),
  title: v.string(),
  description: v.string(),
  labels: textsJson,
  status: v.picklist(STATUSES),
  assigned_to: nullable,
  created_by: v.string(),
  on_behalf: textsJson,
  claimed_by: nullable,
  /** The job of the queue that works on it by a turn. */
  claim_id: nullable,
  claimed_at: nullable,
  lease_until: nullable,
  attempts: v.number(),
  created_at: v.string(),
  completed_at: nullable,
  result: nullable,
  revision: v.number(),
  wake: v.number(),
  turn_id: nullable,
  hops: v.number(),
})
export type StoredTask = v.InferOutput<typeof StoredTask>

const readTexts = (json: string): string[] => v.parse(Texts, readJson(json))
/** Where title and description may come from. */
export const labelsOf = ({ labels }: Pick<StoredTask, 'labels'>): string[] => readTexts(labels)
/** The agents that it is for in the end, by id: the one that posted it is the last. */
export const behalfOf = ({ on_behalf: agents }: Pick<StoredTask, 'on_behalf'>): string[] => readTexts(agents)

export function toView(row: StoredTask): TaskView {
  const { on_behalf: _, claim_id: __, hops: ___, ...shown } = row
  return { ...shown, labels: labelsOf(row), wake: row.wake === 1 }
}
export function toTask(row: StoredTask): Task {
  return {
    id: row.id,
    title: row.title,
    description: row.description,
    status: row.status,
    assignedTo: row.assigned_to ?? undefined,
    createdBy: row.created_by,
    claimedBy: row.claimed_by ?? undefined,
    result: row.result ?? undefined,
    labels: labelsOf(row),
    revision: row.revision,
    createdAt: row.created_at,
  }
}
