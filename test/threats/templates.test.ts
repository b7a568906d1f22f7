import { describe, expect, it } from 'vitest'
import { startReceiver } from '../plugins/webhooks/receiver.ts'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

describe('threats: text that is filled into text', () => {
  /**
   * Of every kind of template somebody may think of, with what JavaScript itself takes for one when it replaces. It
   * stands once in what is made of it.
   */
  const bomb =
    '{{event}}{{value}}{{#each x}}{{/each}}${process.env.PATH}${value}%PATH%$HOME$&$`$\'$1$$<%= 1 %>{% include "x" %}[[value]]{{{{value}}}}'
  const once = (text: string | undefined): void => {
    expect(text?.split(bomb).length).toBe(2)
    expect(text).not.toContain(String(process.env['PATH']))
  }
  const spoken = (stage: ChatStage, request = -1): string =>
    (stage.fake.requests.at(request)?.body.messages ?? [])
      .flatMap(({ content }) =>
        Array.isArray(content) ? content.map(({ text }) => String(text ?? '')) : [String(content)],
      )
      .join('\n')

  it('Template recursion: what a message, a caller from outside, another agent or a manifest says is put in once, as it is', async () => {
    const token = 'a-token-of-more-than-thirty-two-characters'
    await using stage = await openChat({
      config: {
        webhook_triggers: { enabled: true, token },
        plugins: { approvals: { policy: 'never' }, chat: { compaction: { threshold_messages: 4, keep_recent: 2 } } },
      },
    })
    await stage.post(`/api/agents/${stage.agent}/message`, { message: bomb })
    once(spoken(stage))
    await stage.host.json(
      'POST',
      '/api/hooks/agent',
      { message: bomb, agent: await stage.spawn('called') },
      { authorization: `Bearer ${token}` },
    )
    once(spoken(stage))
    const before = stage.fake.requests.length
    await stage.host.json(
      'POST',
      '/api/hooks/wake',
      { text: bomb, agent: await stage.spawn('woken') },
      { authorization: `Bearer ${token}` },
    )
    await stage.fake.request(before)
    once(spoken(stage))
    // What the manifest puts into every conversation, in each of its places.
    for (const position of ['system', 'before_user', 'after_reset']) {
      const injected = await stage.spawn(
        `injected-${position}`,
        [],
        `[[context_injection]]\nname = "note"\nposition = "${position}"\ncontent = ${JSON.stringify(bomb)}\n`,
      )
      await stage.post(`/api/agents/${injected}/message`, { message: 'hello' })
      once(spoken(stage))
    }
    // One agent to another, and back.
    const [from, to] = [await stage.spawn('from', ['*'], ''), await stage.spawn('to')]
    await stage.host.json('PATCH', `/api/agents/${from}`, {
      manifest_toml: 'name = "from"\n[capabilities]\ntools = ["*"]\nagent_message = ["*"]\n',
    })
    stage.fake.script(
      { calls: [{ name: 'agent_send', args: { agent_id: to, message: bomb } }] },
      { text: bomb },
      { text: 'done' },
    )
    await stage.post(`/api/agents/${from}/message`, { message: 'ask' })
    once(spoken(stage, -2))
    expect(JSON.stringify(stage.fake.requests.at(-1)?.body.messages?.at(-1)?.content)).toContain(
      JSON.stringify(bomb).slice(1, -1),
    )
  })

  it('Template recursion: what is summarised is told once, and the summary is put in as it is', async () => {
    await using stage = await openChat({
      config: { plugins: { chat: { compaction: { threshold_messages: 100, keep_recent: 2 } } } },
    })
    for (const message of ['first', bomb, 'third', 'fourth'])
      await stage.post(`/api/agents/${stage.agent}/message`, { message })
    stage.fake.script({ text: `They said ${bomb}` })
    expect((await stage.post(`/api/agents/${stage.agent}/session/compact`)).status).toBe(200)
    once(spoken(stage))
    await stage.post(`/api/agents/${stage.agent}/message`, { message: 'go on' })
    once(spoken(stage))
  })

  it('Template recursion: what a receiver is told holds the words as they are', async () => {
    await using receiver = await startReceiver('a-secret-of-the-receiver')
    await using stage = await openChat({
      config: { outbound: { allow: ['127.0.0.1'] }, plugins: { webhooks: { poll_ms: 20 } } },
    })
    await stage.host.json('POST', '/api/webhooks', {
      name: 'all',
      url: `${receiver.url}/hook`,
      events: ['all'],
      secret: 'a-secret-of-the-receiver',
    })
    stage.fake.script({ text: bomb })
    await stage.post(`/api/agents/${stage.agent}/message`, { message: 'say it' })
    const [told] = await receiver.count(1, ({ raw: text }) => text.includes(JSON.stringify(bomb).slice(1, -1)))
    once(told?.body.data.response)
  })
})
