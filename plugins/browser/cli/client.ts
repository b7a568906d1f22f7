import * as v from 'valibot'

const text = v.string()
const Session = v.looseObject({ agent_id: text, agent_name: text, url: text, title: text, last_used_at: text })
export const BrowserList = v.looseObject({
  sessions: v.array(Session),
  max_sessions: v.number(),
  chromium: v.nullable(text),
  problem: v.nullable(text),
})
