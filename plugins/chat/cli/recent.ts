import * as v from 'valibot'
import { escapeControls } from 'svc/cli'
import type { DaemonClient, View } from 'svc/cli'

const Recent = v.looseObject({ messages: v.array(v.looseObject({ role: v.string(), content: v.string() })) })

/** Shows how a session ended, so that one can go on in it. */
export async function showRecent(client: DaemonClient, view: View, sessionId: string): Promise<void> {
  const { messages } = await client.call('GET', `/api/sessions/${sessionId}?limit=2`, Recent)
  for (const { role, content } of messages) {
    if (content === '') continue
    if (role === 'User') view.note(`> ${escapeControls(content, true)}`)
    else {
      view.text(content)
      view.endAnswer()
    }
  }
}
