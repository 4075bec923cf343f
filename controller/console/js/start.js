document.title = `Trainyard: ${document.documentElement.dataset.source}`;
