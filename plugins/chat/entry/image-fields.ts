import * as v from 'valibot'

/** What a client of another service is told that sends pictures in a form this one has no field for. */
export const SEND_PICTURES =
  'send pictures as attachments: POST /api/agents/{id}/upload, then "attachments": [{"file_id": "…"}]; ' +
  'POST /v1/chat/completions takes an image_url'

const isPicture = /^(?:input_)?(?:image|picture|photo)(?:s|_?urls?|_?data)?$/i
const isText = /^(?:text|content|message)$/

/**
 * Whether parts of a message contain a picture: a field or type with such a name, or a data URL outside of the text.
 */
export function holdsPicture(parts: unknown): boolean {
  if (!isObject(parts)) return false
  return Object.entries(parts).some(([name, value]: [string, unknown]) =>
    typeof value === 'string'
      ? value !== '' &&
        (isPicture.test(name === 'type' ? value : name) || (!isText.test(name) && /^data:image\//i.test(value)))
      : holdsPicture(value) || (isPicture.test(name) && isObject(value) && Object.keys(value).length > 0),
  )
}
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/**
 * An object with these fields. It ignores other fields, but refuses pictures in them: the answer would be about a
 * picture that the model never saw.
 */
export function withoutPictures<T extends v.ObjectEntries>(entries: T) {
  return v.pipe(
    v.looseObject(entries),
    v.check(
      (body) =>
        !holdsPicture(Object.fromEntries(Object.entries(body).filter(([name]) => !Object.hasOwn(entries, name)))),
      SEND_PICTURES,
    ),
  )
}
