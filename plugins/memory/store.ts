import { readOwnJson } from 'svc/internal'
import { sqlPart } from 'svc/sdk'
import type { PluginDatabase, SqlPart } from 'svc/sdk'
import type { MemoryFilter } from './contract.ts'
import type { ReadScope } from './entries/access.ts'

/** Held by what deletes memories, and by what must not write again what was deleted, or write of it. */
export const DELETION = 'memory_tombstone'

/** Conditions on rows of `memory_entry`: whether their agent was removed, and they are only there to be deleted. */
export const isOfRemovedAgent = sqlPart`memory_entry.agent_id IN (SELECT agent_id FROM memory_removal)`
export const isKept = sqlPart`memory_entry.agent_id NOT IN (SELECT agent_id FROM memory_removal)`

/** What the scope may see, as a condition on rows of `memory_entry`: what `isVisible` says. */
export function visibleTo({ all, isPerson, userId, agentId, sessionId, shared }: ReadScope): SqlPart {
  if (all) return isKept
  if (isPerson) return sqlPart`(memory_entry.user_id = ${userId} AND ${isKept})`
  return sqlPart`(${isKept} AND (
    (memory_entry.agent_id = ${agentId} AND (
      (memory_entry.level = 'agent' AND memory_entry.user_id IN ('', ${userId}))
      OR (memory_entry.level = 'user' AND memory_entry.user_id = ${userId})
      OR (memory_entry.level = 'session' AND memory_entry.session_id = ${sessionId}
        AND memory_entry.session_id <> '' AND memory_entry.user_id = ${userId})))
    OR (memory_entry.agent_id || ' ' || memory_entry.level IN (SELECT key FROM json_each(${idSet(shared)}))
      AND (memory_entry.user_id = ${userId} OR (memory_entry.level = 'agent' AND memory_entry.user_id = '')))))`
}

/** What a filter wants, its agent aside, as a condition on rows of `memory_entry`. */
export function matching(
  { userId, level, category, tags = [], since, until }: MemoryFilter,
  dialect: PluginDatabase['dialect'],
): SqlPart {
  const conditions = tags.map((tag) =>
    dialect === 'sqlite'
      ? sqlPart`EXISTS (SELECT 1 FROM json_each(memory_entry.tags) AS tag WHERE tag.value = ${tag})`
      : sqlPart`CAST(memory_entry.tags AS JSONB) @> CAST(${JSON.stringify([tag])} AS JSONB)`,
  )
  if (userId !== undefined) conditions.push(sqlPart`memory_entry.user_id = ${userId}`)
  if (level !== undefined) conditions.push(sqlPart`memory_entry.level = ${level}`)
  if (category !== undefined && category !== '') conditions.push(sqlPart`memory_entry.category = ${category}`)
  if (since !== undefined) conditions.push(sqlPart`memory_entry.created_at >= ${since}`)
  if (until !== undefined) conditions.push(sqlPart`memory_entry.created_at < ${until}`)
  return conditions.reduce((all, condition) => sqlPart`${all} AND ${condition}`, sqlPart`1 = 1`)
}

/**
 * A set of ids as one value: an object of JSON with the ids as its names, which both engines read in the same words. Without
 * those that no row can have: PostgreSQL refuses to read them.
 */
export const idSet = (ids: Iterable<string>): string =>
  `{${[...ids].flatMap((id) => (isText(id) ? [`${JSON.stringify(id)}:1`] : [])).join(',')}}`
/** Whether every engine can keep it, so that it is found again as it was written. */
export const isText = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** Numbers of many rows in one text: a row for each takes longer to read than to find. `numbersOf` reads it. */
export const joined = (column: SqlPart, dialect: PluginDatabase['dialect']): SqlPart =>
  dialect === 'sqlite' ? sqlPart`group_concat(${column})` : sqlPart`string_agg(CAST(${column} AS TEXT), ',')`
export const numbersOf = (text: string | undefined): readonly number[] =>
  text === undefined ? [] : (readOwnJson(`[${text}]`) as number[])
