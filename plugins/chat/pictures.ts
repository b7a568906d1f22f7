import * as v from 'valibot'

/** What a client of another service is told that sends pictures in a form this one has no field for. */
export const SEND_PICTURES =
  'pictures are sent as attachments: upload each with POST /api/agents/{id}/upload and name it in "attachments": [{"file_id": "…"}]. POST /v1/chat/completions takes an image_url'

const DEEPEST = 8
const isPicture = /^(?:input_)?(?:image|picture|photo)(?:s|_?urls?|_?data)?$/i
const isText = /^(?:text|content|message)$/
const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  value === false ||
  (Array.isArray(value) && value.length === 0)

/** Whether there is a picture in parts of a content: a field or a type that is called one, or a data URL of one outside of the text. */
export function holdsPicture(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return false
  return Object.entries(value).some(
    ([name, inner]) =>
      (isPicture.test(name) && !isEmpty(inner)) ||
      (name === 'type' && typeof inner === 'string' && isPicture.test(inner)) ||
      (!isText.test(name) && typeof inner === 'string' && /^data:image\//i.test(inner)) ||
      holdsPicture(inner, depth + 1),
  )
}

/** An object with these fields. Others have no effect, unless they hold a picture: an answer about one that was never seen would be wrong. */
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
