# Built in one stage with everything, run in another with what the daemon needs.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Without scripts: Node is that of the image, and nothing has to be compiled.
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:24-bookworm-slim
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
RUN useradd --create-home --uid 10001 svc && mkdir /data && chown svc /data
USER svc
ENV SVC_HOME=/data
VOLUME /data
EXPOSE 4545
# Bound wide inside the container, so a key is required: set SVC_API_KEY.
ENTRYPOINT ["node", "dist/svc.js"]
CMD ["start", "--host", "0.0.0.0"]
