import * as v from 'valibot'

const text = v.string()
const orNull = v.nullable(text)
export const BrowserParams = v.object({
  agent_id: v.pipe(text, v.uuid('Invalid agent ID'), v.toLowerCase()),
})
const Row = v.object({
  agent_id: text,
  agent_name: text,
  url: v.pipe(text, v.description('Where it is; empty before its first page.')),
  title: text,
  started_at: text,
  last_used_at: text,
})
export const BrowserList = v.object({
  sessions: v.array(Row),
  total: v.number(),
  max_sessions: v.number(),
  chromium: v.pipe(orNull, v.description('The program that is started; `null` when none can be.')),
  problem: v.pipe(orNull, v.description('Why no browser can be opened here.')),
})
export const Closed = v.object({ status: v.literal('closed'), agent_id: text })
