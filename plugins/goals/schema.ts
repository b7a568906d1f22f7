import * as v from 'valibot'

export const STATUSES = ['pending', 'in_progress', 'completed', 'cancelled'] as const

const optional = v.exactOptional
const uuid = (message: string) => v.pipe(v.string(), v.uuid(message), v.toLowerCase())
export const status = v.picklist(STATUSES)
export const progress = v.pipe(
  v.number(),
  v.integer('Expected a whole number from 0 to 100'),
  v.minValue(0, 'Expected a whole number from 0 to 100'),
  v.maxValue(100, 'Expected a whole number from 0 to 100'),
)
/** Anything else would come back from the database as another text, or not be stored at all. */
const wellFormed = v.check(
  (value: string) => value.isWellFormed() && !value.includes('\0'),
  'must be well-formed Unicode without NUL',
)
export const title = v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(256), wellFormed)
export const description = v.pipe(v.string(), v.maxLength(4_096), wellFormed)
export const dueAt = v.pipe(
  v.string(),
  v.check(isTime, 'Expected a time such as 2026-12-31T18:00:00Z'),
  v.description('A time such as 2026-12-31T18:00:00Z.'),
)

/** Fields of a goal. With a PUT, what is shown and not changed may be sent back. */
export const GoalFields = v.object({
  title: optional(title),
  description: optional(description),
  status: optional(status),
  progress: optional(v.pipe(progress, v.description('Percent.'))),
  agent_id: v.nullish(v.pipe(v.string(), v.maxLength(256), v.description('Id or name of an agent.'))),
  parent_id: v.nullish(uuid('Invalid goal ID')),
  due_at: v.nullish(dueAt),
})
export type GoalFields = v.InferOutput<typeof GoalFields>
export const NewGoal = v.object({ ...GoalFields.entries, title })

export const GoalParams = v.object({ id: uuid('Invalid goal ID') })
const whole = v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'Expected a whole number from 0 to 9999999'))
export const ListQuery = v.object({
  status: v.optional(status),
  agent_id: v.optional(uuid('Invalid agent ID')),
  roots: v.optional(v.pipe(v.picklist(['true', 'false']), v.description('Only those without a parent.'))),
  limit: v.optional(whole),
  offset: v.optional(whole),
})

const orNull = v.nullable(v.string())
export const GoalView = v.object({
  id: v.string(),
  title: v.string(),
  description: v.string(),
  status,
  progress: v.number(),
  agent_id: orNull,
  parent_id: orNull,
  due_at: orNull,
  created_by: v.pipe(orNull, v.description('The agent that made it.')),
  created_at: v.string(),
  updated_at: v.string(),
})
export type GoalView = v.InferOutput<typeof GoalView>

const TIME = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/
/** Also refuses days that a month does not have, which `Date.parse` moves to the next one. */
function isTime(text: string): boolean {
  const [, year, month, day] = TIME.exec(text) ?? []
  if (year === undefined || Number.isNaN(Date.parse(text))) return false
  return new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === Number(day)
}
