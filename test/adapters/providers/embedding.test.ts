import { describe, expect, it } from 'vitest'
import { embedLocally } from '../../../adapters/providers/builtin/embedding.ts'

const never = new AbortController().signal
const embed = async (texts: readonly string[], model = 'ngram-256') =>
  (await embedLocally({ model, texts }, never)).vectors
const likeness = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0)
/** The text among the others that is nearest to the question. */
async function nearest(question: string, texts: readonly string[]): Promise<string | undefined> {
  const [asked, ...others] = await embed([question, ...texts])
  const scores = others.map((vector) => likeness(asked ?? vector, vector))
  return texts[scores.indexOf(Math.max(...scores))]
}

describe('the embedded vectors', () => {
  it('are the same for the same text, of length 1, and of the size that is asked for', async () => {
    const [one, two] = await embed(['Grüße an 日本 😀', 'Grüße an 日本 😀'])
    expect(one).toEqual(two)
    expect(Math.hypot(...(one ?? []))).toBeCloseTo(1, 5)
    expect((await embed(['a'], 'ngram-1024'))[0]).toHaveLength(1024)
    // Kept, because vectors are: those of another release have to be comparable with these.
    const [kept] = await embed(['the quick brown fox'], 'ngram-16')
    expect([...(kept ?? [])].map((value) => Math.round(value * 1000) + 0)).toEqual([
      0, 0, -569, 345, -190, 0, 190, -224, -190, -190, -414, 190, 0, 345, 0, 190,
    ])
  })
  it('of texts that share words or parts of words are nearer than of others', async () => {
    const notes = [
      'The deployment failed because the database password had expired.',
      'Anna likes her coffee black, without sugar.',
      'Our office moves to Rotterdam in March.',
      'The invoice for the servers is due on Friday.',
    ]
    expect(await nearest('why did deploying fail? database passwords?', notes)).toBe(notes[0])
    expect(await nearest('How does Anna drink coffee', notes)).toBe(notes[1])
    expect(await nearest('moving the office', notes)).toBe(notes[2])
    expect(await nearest('invoise for sevrers', notes)).toBe(notes[3])
  })
  it('work in other scripts', async () => {
    const notes = ['東京の天気は晴れです', '会議は金曜日に移動しました', 'Встреча перенесена на пятницу']
    expect(await nearest('東京の天気', notes)).toBe(notes[0])
    expect(await nearest('когда встреча', notes)).toBe(notes[2])
  })
  it('do not know what words mean', async () => {
    const [car, automobile, carpet] = await embed(['car', 'automobile', 'carpet'])
    if (!car || !automobile || !carpet) throw new Error('no vectors')
    expect(likeness(car, automobile)).toBeLessThan(likeness(car, carpet))
  })
  it('of nothing are null, and a model that is none is refused', async () => {
    expect((await embed(['', ' ?! ']))[1]?.every((value) => value === 0)).toBe(true)
    for (const model of ['ngram-8', 'ngram-99999', 'ngram-x', 'text-embedding-3-small'])
      await expect(embed(['a'], model)).rejects.toMatchObject({ reason: 'not_found', retry: 'never' })
  })
  it('end with an abort', async () => {
    const controller = new AbortController()
    const reason = new Error('stop')
    const made = embedLocally({ model: 'ngram-256', texts: ['a', 'b', 'c'] }, controller.signal)
    controller.abort(reason)
    await expect(made).rejects.toBe(reason)
  })
})
