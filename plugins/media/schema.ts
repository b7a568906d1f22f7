import * as v from 'valibot'
import { SPEECH_FORMATS } from 'svc/providers'

const text = (max: number, description: string) =>
  v.pipe(v.string(), v.minLength(1), v.maxLength(max), v.description(description))
const path = v.pipe(
  text(1024, 'Relative to the workspace'),
  v.check((name) => name.isWellFormed(), 'must be well-formed Unicode'),
)
const language = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^[a-z]{2,3}$/, 'expected a code such as "en"'),
    v.description('ISO 639-1, such as "en"; found out when absent'),
  ),
)
/** Words of the vendor: letters, digits and what joins them. */
const word = (description: string) =>
  v.optional(v.pipe(v.string(), v.regex(/^[\w.:/@-]{1,100}$/, 'expected one word'), v.description(description)))

/** What an agent, or somebody for it, asks for. */
export const imageInput = {
  prompt: text(32_000, 'What the pictures show, with style, light and what to leave out'),
  model: word('A model of the provider, or provider/model; the usual one when absent'),
  size: word('Such as 1024x1024, 1536x1024 or 1024x1536'),
  quality: word('Such as low, medium or high'),
  count: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(10)), 1),
}
export const speechInput = {
  text: text(100_000, 'What is said'),
  voice: word('Such as alloy, nova or onyx; the usual one when absent'),
  format: v.optional(v.picklist(SPEECH_FORMATS), 'mp3'),
}
export const transcriptInput = { path, language }
