import { describe, expect, it } from 'vitest'
import { countTokens, familyOf, maxTokens } from '../../../plugins/chat/context/window.ts'

/**
 * What real tokenizers count, written down because they weigh tens of megabytes: `gpt` is o200k_base of gpt-tokenizer
 * 4.0.0, `llama` that of Llama 3 by llama3-tokenizer-js 1.2.0, `claude` the one Anthropic published for its second
 * generation (@anthropic-ai/tokenizer 0.0.4); it publishes none for later ones.
 */
const counted: readonly (readonly [
  kind: string,
  tokens: { readonly gpt: number; readonly claude: number; readonly llama: number },
  text: string,
])[] = [
  [
    'prose',
    { gpt: 39, claude: 39, llama: 39 },
    'The daemon keeps every message it has accepted, even when the connection breaks in the middle of an answer. ' +
      'When you come back, the answer is waiting for you, and nothing was said twice.',
  ],
  [
    'german',
    { gpt: 31, claude: 54, llama: 42 },
    'Die Nachricht wird gespeichert, bevor jemand daran arbeitet. ' +
      'Wenn die Verbindung abbricht, geht nichts verloren, und die Antwort liegt später in der Sitzung bereit.',
  ],
  [
    'code',
    { gpt: 73, claude: 76, llama: 71 },
    [
      'export function countTokens(text: string, family: Family): number {',
      '  let tokens = 0',
      '  for (let at = 0; at < text.length; at++) {',
      '    const code = text.charCodeAt(at)',
      '    if (code < 0x80) tokens += family.latin',
      '  }',
      '  return Math.ceil(tokens)',
      '}',
      '',
    ].join('\n'),
  ],
  [
    'json',
    { gpt: 93, claude: 94, llama: 92 },
    '{"id":"3f2b8c1e-5d47-4a6b-9c0e-1f2a3b4c5d6e","name":"weather",' +
      '"args":{"city":"Berlin","days":7,"units":"metric"},' +
      '"created_at":"2026-11-20T21:47:11.123Z","ok":true,"items":[1,2,3,4,5]}',
  ],
  [
    'numbers',
    { gpt: 52, claude: 40, llama: 52 },
    '1763673600 48215 3.14159265 2026-11-20 99.95 1,234,567 007 42 65536 0.001 8080 127.0.0.1',
  ],
  [
    'chinese',
    { gpt: 43, claude: 50, llama: 43 },
    '守护进程会保存它接受的每一条消息。即使连接在回答的中途断开，答案也会在会话里等着你，什么都不会丢失。',
  ],
  [
    'japanese',
    { gpt: 42, claude: 54, llama: 42 },
    'デーモンは受け付けたすべてのメッセージを保存します。回答の途中で接続が切れても、答えはセッションに残っています。',
  ],
  [
    'korean',
    { gpt: 40, claude: 73, llama: 41 },
    '데몬은 받은 모든 메시지를 저장합니다. 답변 도중에 연결이 끊어져도 답은 세션에서 기다리고 있으며 아무것도 잃어버리지 않습니다.',
  ],
  [
    'russian',
    { gpt: 30, claude: 62, llama: 39 },
    'Служба сохраняет каждое принятое сообщение. ' +
      'Даже если связь прервётся посреди ответа, он будет ждать вас в сеансе.',
  ],
  [
    'arabic',
    { gpt: 30, claude: 88, llama: 39 },
    'تحفظ الخدمة كل رسالة قبلتها. حتى لو انقطع الاتصال في منتصف الإجابة، فستجدها في الجلسة عندما تعود.',
  ],
  [
    'hindi',
    { gpt: 31, claude: 106, llama: 50 },
    'सेवा हर स्वीकार किए गए संदेश को सहेजती है। उत्तर के बीच में कनेक्शन टूटने पर भी उत्तर सत्र में मिलेगा।',
  ],
  ['emoji', { gpt: 32, claude: 46, llama: 45 }, 'Great job! 🎉🎉 Ship it 🚀🔥 — thanks team 🙏👨‍👩‍👧‍👦 ❤️ 👍🏽'],
  [
    'markdown',
    { gpt: 41, claude: 42, llama: 40 },
    [
      '## Results',
      '',
      '| figure | value |',
      '|---|---|',
      '| start | 135 ms |',
      '| memory | 73 MB |',
      '',
      '- **fast**: yes',
      '- *small*: `mostly`',
      '',
    ].join('\n'),
  ],
  [
    'shell',
    { gpt: 54, claude: 53, llama: 53 },
    'curl -s localhost:4545/api/agents | sed \'s/.*"id":"\\([^"]*\\)".*/\\1/\' ' +
      '&& docker run --rm -it -v "$PWD:/work" node:24 npm test -- --reporter=dot',
  ],
]
const models = { gpt: 'gpt-4o', claude: 'claude-sonnet', llama: 'llama-3.3-70b' } as const
const names = ['gpt', 'claude', 'llama'] as const

describe.each(names)('the estimate for %s', (name) => {
  const family = familyOf(models[name])
  it.each(counted)('of %s is within a third below and a half above what its tokenizer counts', (_, tokens, text) => {
    const ratio = countTokens(text, family) / tokens[name]
    expect(ratio).toBeGreaterThan(0.66)
    expect(ratio).toBeLessThan(1.5)
  })
  it('is on the whole a tenth too high rather than too low', () => {
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
    const ratio =
      sum(counted.map(([, , text]) => countTokens(text, family))) / sum(counted.map(([, tokens]) => tokens[name]))
    expect(ratio).toBeGreaterThan(0.97)
    expect(ratio).toBeLessThan(1.2)
  })
})

it('no text counts more than the quick upper bound says', () => {
  const models = ['gpt-4o', 'claude-sonnet', 'gemini-2.5-pro', 'qwen3-max', 'llama-3.3-70b', 'something-else']
  const texts = [...counted.map(([, , text]) => text), 'a1a1a1', '{}[]"":,', '漢字', '🎉🎉', '\n\t\n\t', ' 1 2 3', '']
  for (const model of models)
    for (const text of texts)
      expect(countTokens(text, familyOf(model))).toBeLessThanOrEqual(
        Math.ceil(maxTokens([{ role: 'user', parts: [{ type: 'text', text }] }])),
      )
})

// Counting that grows with the square would need minutes here, and the time limit of a test ends it.
it('counts a text of a megabyte', () => {
  const text = counted
    .map(([, , text]) => text)
    .join('\n')
    .repeat(600)
  expect(text.length).toBeGreaterThan(900_000)
  expect(countTokens(text, familyOf('gpt-4o'))).toBeGreaterThan(100_000)
})
