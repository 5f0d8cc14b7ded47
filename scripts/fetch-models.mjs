// npm run fetch-models: the default model and those that the tests read.
import { allModels, ensureModel, modelFile } from './models.mjs';
import { main, say } from './shell.mjs';

await main(async () => {
  for (const model of allModels()) {
    await ensureModel(model);
    say(`${model.name}: ${modelFile(model)}`);
  }
});
